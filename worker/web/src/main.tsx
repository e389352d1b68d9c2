// Starts the page: settings, routing, the first health request, the frame.

import { render } from "preact";
import { startChannels } from "./lib/channel";
import { startRouting } from "./lib/route";
import { startLaunches } from "./stores/launches";
import { startNotifications } from "./stores/notifications";
import { checkHealth, started } from "./stores/session";
import { startSettings } from "./stores/settings";
import { startKeys } from "./lib/keys";
import { Frame } from "./views/frame";

startSettings();
startRouting();
startChannels();
startKeys();
startNotifications();
void checkHealth();
// Sockets wait for the first answer: without a token they would only be refused.
const stop = started.subscribe((now) => {
    if (now) queueMicrotask(() => stop());
    if (now) startLaunches();
});
render(<Frame />, document.getElementById("page")!);
