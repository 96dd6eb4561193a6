// What every page gets. Everything here is an addition: without it, pages read and forms submit as they are.
import { startAgain } from "./parts/again.js";
import { startCopying } from "./parts/copy.js";
import { startElapsed } from "./parts/elapsed.js";
import { startGrading } from "./parts/grading.js";
import { startGradebook } from "./parts/gradebook.js";
import { startKeeping } from "./parts/keep.js";
import { startKeys } from "./parts/keys.js";
import { startLinked } from "./parts/linked.js";
import { startLive } from "./parts/live.js";
import { startMenus } from "./parts/menus.js";
import { startOnce } from "./parts/once.js";
import { startAnswering } from "./parts/request-keys.js";
import { startScrolling } from "./parts/scrolling.js";
import { startThemeToggle } from "./parts/theme-toggle.js";
import { startTimes } from "./parts/times.js";

startThemeToggle();
startKeys();
startCopying();
startMenus();
// Before what adds up or marks what stands in a form.
startKeeping();
startGrading();
startTimes(document);
startScrolling(document);
startElapsed();
startLinked();
startAgain();
for (const region of document.querySelectorAll("[data-live]")) startLive(region);
startGradebook();
startOnce();
startAnswering();
