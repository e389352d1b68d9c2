// Starts the page: settings, routing, the first health request, the frame.

import { render } from "preact";
import { startChannels } from "./lib/channel";
import { startRouting } from "./lib/route";
import { checkHealth } from "./stores/session";
import { startSettings } from "./stores/settings";
import { startKeys } from "./lib/keys";
import { Frame } from "./views/frame";

startSettings();
startRouting();
startChannels();
startKeys();
void checkHealth();
render(<Frame />, document.getElementById("page")!);
