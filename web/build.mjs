// Bundles src/ into static/dist/ under names that carry their content's hash, and writes the manifest that the server reads.
import { build, context } from "esbuild";
import { copyFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(fileURLToPath(import.meta.url));
const dist = path.join(root, "static", "dist");

/** The packages whose fonts are shipped; their licence goes with them. */
const FONTS = ["inter", "jetbrains-mono"];

/** Name of an entry or a font → file under static/, so that a template asks for "app.js" and gets "dist/app-3F2A….js". */
const manifest = {
  name: "manifest",
  setup(pluginBuild) {
    pluginBuild.onEnd(async ({ metafile, errors }) => {
      if (errors.length > 0) return;
      const names = {};
      for (const [file, output] of Object.entries(metafile.outputs)) {
        const source = output.entryPoint ?? (file.endsWith(".woff2") && Object.keys(output.inputs)[0]);
        if (!source) continue;
        const name = path.basename(source);
        names[name] = path.relative(path.join(root, "static"), path.join(root, file)).replaceAll(path.sep, "/");
      }
      await writeFile(path.join(dist, "manifest.json"), JSON.stringify(names, null, 2) + "\n");
      for (const font of FONTS) {
        await copyFile(path.join(root, "node_modules", "@fontsource-variable", font, "LICENSE"), path.join(dist, `${font}-LICENSE.txt`));
      }
    });
  },
};

const options = {
  absWorkingDir: root,
  entryPoints: ["src/theme.js", "src/app.js", "src/editor.js", "src/charts.js", "src/app.css"],
  outdir: "static/dist",
  entryNames: "[name]-[hash]",
  chunkNames: "chunk-[hash]",
  assetNames: "[name]-[hash]",
  loader: { ".woff2": "file" },
  bundle: true,
  splitting: true,
  format: "esm",
  minify: true,
  sourcemap: process.argv.includes("--watch"),
  // `light-dark()` and nesting are kept as they are written.
  target: ["chrome123", "firefox121", "safari17.5"],
  metafile: true,
  logLevel: "info",
  plugins: [manifest],
};

await rm(dist, { recursive: true, force: true });
if (process.argv.includes("--watch")) await (await context(options)).watch();
else await build(options);
