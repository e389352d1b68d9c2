"""A shell in a real container: the real command, Docker, and programs that draw the screen."""
import os
import re
import signal
import time

import pyte

import process
import terminal_image
from harness import Place, Server
from report import REAL, call, case, must, same, skip_all
from screen import Screen

RUN, CONTAINER = "lab-terminal", "terminal"
PATH = "/api/pty/" + RUN


class Display(pyte.Screen):
    """Takes the marks of private sequences that it has no use for."""

    def select_graphic_rendition(self, *attrs, **_):
        super().select_graphic_rendition(*attrs)

    def report_device_attributes(self, *_, **__):
        pass


class Terminal(Screen):
    """A client with a screen of its own, which is drawn by an emulator."""

    def __init__(self, server, cols=100, rows=30, more=""):
        self.display = Display(cols, rows)
        self.stream, self.drawn, self.drawing = pyte.ByteStream(self.display), 0, True
        super().__init__(server, "%s?mode=binary&cols=%d&rows=%d%s" % (PATH, cols, rows, more))
        self.session = self.first("session")["id"]

    def frame(self):
        try:
            super().frame()
        except TimeoutError:
            raise AssertionError("nothing more came: %r %r" % (
                self.lines(), self.output[-300:])) from None
        if not self.drawing:
            return
        end = self.sizes[-1][0] if self.sizes and self.sizes[-1][0] > self.drawn else None
        self.stream.feed(self.output[self.drawn:end])
        self.drawn = len(self.output)

    def resize(self, cols, rows):
        self.display.resize(rows, cols)
        super().resize(cols, rows)

    def lines(self):
        return [line.rstrip() for line in self.display.display]

    def drawn_when(self, check, what):
        """Until the screen is so. `check` sees its lines."""
        until = time.monotonic() + 60
        while not check(self.lines()):
            if time.monotonic() > until:
                raise AssertionError("%s: %r" % (what, self.lines()))
            self.frame()

    def has(self, text):
        self.drawn_when(lambda lines: any(text in line for line in lines), text)

    def prompt(self):
        self.drawn_when(lambda lines: lines[self.display.cursor.y] == "lab#" and
                        self.display.cursor.x == 5, "a prompt")

    def run(self, command, pattern):
        self.type(command + "\r")
        return self.shows(pattern)


class World:
    def __init__(self, docker):
        self.docker, self.servers = docker, []
        terminal_image.make()
        self.start_container()
        self.place = Place(demo=False)
        self.server = self.start()

    def start_container(self):
        labels = {"webui": "true", "run-id": RUN, "task-id": "task-1", "model": "gpt-6.1-sol",
                  "agent": "codex", "results": "/srv/results/" + RUN}
        options = [o for k, v in labels.items() for o in ("--label", "ssebench.%s=%s" % (k, v))]
        must(["docker", "run", "--detach", "--init", "--name", CONTAINER, *options,
              terminal_image.IMAGE, "sleep", "100000"])

    def start(self, env=None):
        server = Server(self.place, {"SSEBENCH_CLI": REAL, **(env or {})})
        self.servers.append(server)
        process.wait_for(lambda: [r for r in server.runs() if r["id"] == RUN], 60, "the run")
        return server

    def close(self):
        for server in self.servers:
            if server.process.poll() is None:
                server.stop()
        self.place.close()
        call(["docker", "rm", "--force", CONTAINER])

    def inside(self):
        """Command lines of the container's processes, as its own /proc tells."""
        return must(["docker", "exec", CONTAINER, "sh", "-c",
                     "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done"])

    def gone(self, *words):
        process.wait_for(lambda: not [w for w in words if w in self.inside()], 60,
                         "gone inside: " + " ".join(words))

    def end_all(self):
        for entry in self.server.json("/api/pty/sessions")["processes"]:
            self.server.post("/api/pty/sessions/" + entry["sessionId"])

    def none_open(self, server=None):
        server = server or self.server
        process.wait_for(lambda: not server.json("/api/pty/sessions")["processes"], 60,
                         "all terminals are over")
        same(server.json("/api/pty/sessions")["leftovers"], 0, "leftovers")


def size_and_environment(world):
    t = Terminal(world.server)
    t.prompt()
    same(re.search(rb"first=([^=]*)=", t.output).group(1), b"30 100", "size before any output")
    t.run("stty size; tput cols; echo $TERM:$COLORTERM:$LANG", r"30 100\s+100\s+"
          r"xterm-256color:truecolor:C.UTF-8")
    t.run("trap 'echo now=$(stty size)=' WINCH; echo set=$((1+1))=", "set=2=")
    for cols, rows in ((132, 43), (40, 10), (200, 60)):
        t.resize(cols, rows)
        t.shows("now=%d %d=" % (rows, cols))
    t.type("exit 3\r")
    t.to_end()
    same([m for m in t.told if m["type"] == "exit"], [{"type": "exit", "code": 3}], "the end")
    world.none_open()


def wide_characters(world):
    t = Terminal(world.server, 40, 10)
    t.prompt()
    t.type("printf '%s|\\n' 漢字 é👍 e\u0301x\r")
    t.drawn_when(lambda lines: "漢字|" in "\n".join(lines), "wide characters")
    for text, width in (("漢字", 4), ("é", 1), ("ab", 2)):
        t.prompt()
        t.type(text)
        t.drawn_when(lambda _: t.display.cursor.x == 5 + width, "the cursor after " + text)
        t.type("\x7f" * len(text))
    t.close()


def control_c(world):
    t = Terminal(world.server)
    t.prompt()
    t.type("sleep 1000\r")
    process.wait_for(lambda: "sleep 1000 " in world.inside(), 60, "it sleeps")
    t.type("\x03")
    t.run("echo status=$?=", "status=130=")
    t.drawing = False  # or we could not keep up
    t.raw(b"yes flooding-the-terminal\n")
    t.until(lambda: len(t.output) > 1 << 20)
    t.raw(b"\x03")
    t.run("echo after=$((40+2))=", "after=42=")
    t.type("exit\r")
    t.to_end()
    world.none_open()


def comes_back(world):
    t = Terminal(world.server)
    t.prompt()
    pid = t.run("echo pid=$$=", r"pid=(\d+)=").group(1)
    t.run("seq -f line-%.0f 200; sleep 1; echo away=$((1+1))=", "line-200")
    t.close()
    again = Terminal(world.server, 90, 20, "&session=" + t.session)
    again.shows("away=2=")
    assert b"line-1\r" in again.output
    same(again.sizes[0][1:], (100, 30), "the size it was made for")
    same(again.run("echo again=$$=", r"again=(\d+)=").group(1), pid, "the same shell")
    again.run("stty size", "20 90")
    again.type("exit\r")
    again.to_end()
    world.none_open()


STUBBORN = "trap '' HUP; (trap '' HUP TERM; sleep %d) & sleep %d & echo started=$((1+1))="


def end_by_request(world):
    t = Terminal(world.server)
    t.prompt()
    t.run(STUBBORN % (7001, 7002), "started=2=")
    assert "sleep 7001" in world.inside() and "bash" in world.inside()
    entry = world.server.json("/api/pty/sessions")["processes"][0]
    world.server.post("/api/pty/sessions/" + entry["sessionId"])
    world.none_open()
    world.gone("bash", "sleep 7001", "sleep 7002")


def end_of_orphans(world):
    server = world.start({"PTY_CLEANUP_INTERVAL": "200", "PTY_ORPHAN_THRESHOLD": "2000"})
    t = Terminal(server)
    t.prompt()
    t.run(STUBBORN % (7003, 7004), "started=2=")
    t.close()
    world.none_open(server)
    world.gone("bash", "sleep 7003", "sleep 7004")
    same(server.stop(), 0, "stop")


def end_after_a_killed_broker(world):
    t = Terminal(world.server)
    t.prompt()
    t.run(STUBBORN % (7005, 7006), "started=2=")
    os.kill(world.server.broker(), signal.SIGKILL)
    t.to_end()
    world.gone("bash", "sleep 7005", "sleep 7006")
    world.none_open()


def many_at_once(world):
    open_ones = [Terminal(world.server) for _ in range(4)]
    found = []
    for t in open_ones:
        t.prompt()
        found.append(t.run("until [ -s ~/.ssebench-webui-tty/$SSEBENCH_WEBUI_TTY ]; do sleep 0.1; done; "
                           "echo $$:$(cat ~/.ssebench-webui-tty/$SSEBENCH_WEBUI_TTY):", r"[\r\n](\d+):(\d+) \d+:"))
    for mark in found:
        same(mark.group(1), mark.group(2), "the process that its mark names")
    for t in open_ones:
        t.type("exit\r")
        t.to_end()
    world.none_open()


def vim(world):
    t = Terminal(world.server)
    t.prompt()
    t.type("vim /tmp/text\r")
    t.drawn_when(lambda lines: lines[1:29] == ["~"] * 28, "an empty file")
    t.type("iwide 漢字\rsecond line\x1b")
    t.drawn_when(lambda lines: lines[:2] == ["wide 漢字", "second line"], "what was typed")
    t.resize(60, 12)
    t.drawn_when(lambda lines: lines[:2] == ["wide 漢字", "second line"] and
                 lines[2:11] == ["~"] * 9, "after a resize")
    # Away and back at another size: it draws anew.
    t.close()
    t = Terminal(world.server, 70, 15, "&session=" + t.session)
    t.drawn_when(lambda lines: lines[:2] == ["wide 漢字", "second line"] and
                 lines[2:14] == ["~"] * 12, "attached again")
    t.type(":wq\r")
    t.prompt()
    t.run("cat /tmp/text; echo end=$((1+1))=", "wide 漢字\r\nsecond line\r\nend=2=")
    t.type("exit\r")
    t.to_end()


def less(world):
    t = Terminal(world.server, 80, 24)
    t.prompt()
    t.type("seq -f 'line %.0f' 500 > /tmp/lines; less /tmp/lines\r")
    t.drawn_when(lambda lines: lines[:23] == ["line %d" % n for n in range(1, 24)], "first page")
    t.type(" ")
    t.drawn_when(lambda lines: lines[:23] == ["line %d" % n for n in range(24, 47)], "second page")
    t.type("/line 333\r")
    t.drawn_when(lambda lines: lines[0] == "line 333", "found")
    t.type("G")
    t.drawn_when(lambda lines: lines[22] == "line 500", "the end")
    t.type("q")
    t.prompt()
    t.type("exit\r")
    t.to_end()


def monitor(program):
    def check(world):
        t = Terminal(world.server, 100, 30)
        t.prompt()
        t.type(program + "\r")
        t.drawn_when(lambda lines: any("PID" in line and "USER" in line for line in lines),
                     "its table")
        t.has("docker-init")
        t.resize(120, 20)
        t.drawn_when(lambda lines: any("PID" in line and "USER" in line for line in lines) and
                     len(lines) == 20, "after a resize")
        t.type("q")
        t.prompt()
        t.type("exit\r")
        t.to_end()
    return check


def tmux(world):
    """Its server is a session of its own: it outlives the terminal, as people want it to."""
    t = Terminal(world.server, 100, 30)
    t.prompt()
    t.type("tmux -u new -s work bash\r")
    t.drawn_when(lambda lines: lines[29].startswith("[work]"), "the status line")
    t.type("\x02%")
    t.drawn_when(lambda lines: all("│" in line for line in lines[:29]), "two panes")
    t.type("echo in-pane-$((1+1))\r")
    t.has("in-pane-2")
    t.resize(80, 20)
    t.drawn_when(lambda lines: lines[19].startswith("[work]"), "the status line moved")
    entry = world.server.json("/api/pty/sessions")["processes"][0]
    world.server.post("/api/pty/sessions/" + entry["sessionId"])
    world.none_open()
    t = Terminal(world.server, 80, 20)
    t.prompt()
    t.type("tmux -u attach -t work\r")
    t.has("in-pane-2")
    t.type("tmux kill-server\r")
    t.prompt()
    t.type("exit\r")
    t.to_end()
    world.none_open()
    world.gone("bash", "tmux")


def cases(docker):
    names = {"terminal: its size before the first output, its environment, exit status": size_and_environment,
             "terminal: wide characters": wide_characters,
             "terminal: Ctrl-C, also in a flood": control_c,
             "terminal: attached again, with what was shown": comes_back,
             "terminal: four opened at once": many_at_once,
             "terminal: vim": vim, "terminal: less": less, "terminal: tmux": tmux,
             "terminal: top": monitor("top"), "terminal: htop": monitor("htop"),
             "terminal: ended by request, gone inside": end_by_request,
             "terminal: ended unwatched, gone inside": end_of_orphans,
             "terminal: ended after a killed broker, gone inside": end_after_a_killed_broker}
    if docker.why:
        skip_all(names, docker.why)
        return
    world = World(docker)
    try:
        for name, check in names.items():
            case(name, check, world)
            world.end_all()  # what a case that failed left open
    finally:
        world.close()
