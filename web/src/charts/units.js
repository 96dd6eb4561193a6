// Numbers as the pages write them (server/pages/formats.py): three digits and a unit.
const THREE = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 3, useGrouping: false });

export const digits = (value) => THREE.format(value);

function scaled(value, steps) {
  const [factor, unit] = steps.find(([step]) => value >= step) ?? steps.at(-1);
  return `${digits(value / factor)} ${unit}`;
}

export const flops = (tera) => scaled(tera, [[1, "TFLOP/s"], [1e-3, "GFLOP/s"], [1e-6, "MFLOP/s"]]);
export const bandwidth = (tera) => scaled(tera, [[1, "TB/s"], [1e-3, "GB/s"], [1e-6, "MB/s"]]);
export const microseconds = (us) => scaled(us, [[1e6, "s"], [1e3, "ms"], [1e-3, "µs"]].map(([step, unit]) => [unit === "µs" ? 1 : step, unit]));
