// The usual way to put a terminal on a WebSocket: node-pty and ws, bytes as they come.
import pty from "node-pty";
import { WebSocketServer } from "ws";

const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });
server.on("listening", () => console.log(server.address().port));
server.on("connection", (socket) => {
    const shell = pty.spawn("bash", [], { name: "xterm-256color", cols: 80, rows: 24, encoding: null });
    shell.onData((data) => socket.send(data));
    shell.onExit(() => socket.close(1000));
    socket.on("message", (data) => shell.write(data.toString()));
    socket.on("close", () => { try { shell.kill(); } catch { /* it has ended */ } });
});
