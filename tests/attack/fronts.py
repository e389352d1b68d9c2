"""Proxies of Debian in front of the server, and a tap that records what they forward."""
import os
import select
import shutil
import socket
import subprocess
import tempfile
import threading

import process

NGINX = """
daemon off; pid {dir}/pid; error_log {dir}/error.log; worker_processes 1; {user}
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {dir}/a; proxy_temp_path {dir}/b;
  fastcgi_temp_path {dir}/c; uwsgi_temp_path {dir}/d; scgi_temp_path {dir}/e;
  upstream ours {{ server 127.0.0.1:{to}; keepalive 4; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://ours; proxy_http_version 1.1; proxy_set_header Host $http_host;
      proxy_set_header Connection "";
    }}
  }}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
frontend in
  bind 127.0.0.1:{port}
  default_backend ours
backend ours
  http-reuse always
  server one 127.0.0.1:{to}
"""
CADDY = """
{{
  admin off
  auto_https off
}}
http://:{port} {{
  bind 127.0.0.1
  reverse_proxy 127.0.0.1:{to}
}}
"""
APACHE = """
ServerRoot {dir}
PidFile {dir}/pid
ErrorLog {dir}/error.log
ServerName localhost
Listen 127.0.0.1:{port}
{modules}
{apache_user}
ProxyPreserveHost On
ProxyPass / http://127.0.0.1:{to}/
"""
MODULES = "/usr/lib/apache2/modules"
NEEDED = ("mpm_event", "authz_core", "proxy", "proxy_http")

# name -> (program, template, arguments)
FRONTS = {
    "nginx": ("nginx", NGINX, ["-c", "{conf}", "-p", "{dir}", "-e", "{dir}/error.log"]),
    "haproxy": ("haproxy", HAPROXY, ["-db", "-q", "-f", "{conf}"]),
    "caddy": ("caddy", CADDY, ["run", "--config", "{conf}", "--adapter", "caddyfile"]),
    "apache": ("apache2", APACHE, ["-X", "-f", "{conf}"]),
}


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Tap:
    """Relays to the server; remembers both directions of every connection."""

    def __init__(self, to):
        self.to, self.streams, self.lock = to, [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                front, _ = self.listener.accept()
                ours = socket.create_connection(self.to)
            except OSError:
                return
            stream = [bytearray(), bytearray()]
            with self.lock:
                self.streams.append(stream)
            threading.Thread(target=self.pump, args=(front, ours, stream), daemon=True).start()

    @staticmethod
    def pump(front, ours, stream):
        pairs = {front: (ours, stream[0]), ours: (front, stream[1])}
        try:
            while pairs:
                for s in select.select(list(pairs), [], [], 30)[0]:
                    data = s.recv(65536)
                    if not data:
                        return
                    pairs[s][1].extend(data)
                    pairs[s][0].sendall(data)
        except OSError:
            pass
        finally:
            front.close()
            ours.close()

    def take(self):
        """What was recorded since forget(), by connection."""
        with self.lock:
            return [(bytes(a), bytes(b)) for a, b in self.streams if a]

    def forget(self):
        """Connections that live on are kept: the next request may come over one of them."""
        with self.lock:
            for a, b in self.streams:
                del a[:], b[:]

    def close(self):
        self.listener.close()


class Front:
    def __init__(self, name, to):
        program, template, arguments = FRONTS[name]
        self.dir = tempfile.mkdtemp(prefix="attack-front-")
        os.chmod(self.dir, 0o755)
        self.port = free_port()
        root = os.geteuid() == 0
        values = {"dir": self.dir, "port": self.port, "to": to, "conf": self.dir + "/conf",
                  "user": "user root;" if root else "",
                  "apache_user": "User www-data\nGroup www-data" if root else "",
                  "modules": "\n".join("LoadModule %s_module %s/mod_%s.so" % (m, MODULES, m)
                                       for m in NEEDED)}
        with open(values["conf"], "w", encoding="utf-8") as f:
            f.write(template.format(**values))
        self.log = open(self.dir + "/out", "wb")
        self.process = subprocess.Popen(
            [find(program)] + [a.format(**values) for a in arguments], cwd=self.dir,
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": self.dir},
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            process.wait_for(self.answers, 30, name)
        except AssertionError:
            self.close()
            raise

    def answers(self):
        assert self.process.poll() is None, open(self.dir + "/out").read()
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(15)
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)


def start(name, to):
    """A free port may be somebody else's a moment later: a few attempts."""
    for attempt in range(5):
        try:
            return Front(name, to)
        except AssertionError:
            if attempt == 4:
                raise


# --- an independent reading of what was forwarded -------------------------------------------------

def head_of(data):
    head, mark, rest = data.partition(b"\r\n\r\n")
    if not mark:
        return None, [], b""
    lines = head.split(b"\r\n")
    fields = [(k.strip().lower(), v.strip()) for k, _, v in
              (line.partition(b":") for line in lines[1:])]
    return lines[0], fields, rest


def skip_chunks(rest):
    while True:
        size, mark, rest = rest.partition(b"\r\n")
        if not mark:
            return None
        n = int(size.split(b";")[0], 16)
        if n == 0:
            return rest.partition(b"\r\n")[2]
        rest = rest[n + 2:]


def requests_in(data):
    """[(request line, fields)] by RFC 9112: chunked wins, else the length."""
    found = []
    while data:
        line, fields, data = head_of(data)
        if line is None:
            break
        found.append((line, fields))
        values = dict(fields)
        if b"chunked" in values.get(b"transfer-encoding", b""):
            data = skip_chunks(data)
        else:
            data = data[int(values.get(b"content-length", b"0") or b"0"):]
    return found


def statuses_in(data, methods):
    """Statuses of the answers, one per request method in order."""
    found = []
    while data:
        line, fields, data = head_of(data)
        if line is None:
            break
        status, values = int(line.split()[1]), dict(fields)
        found.append(status)
        method = methods[len(found) - 1] if len(found) <= len(methods) else b"GET"
        if method == b"HEAD" or status in (204, 304) or status < 200:
            continue
        if values.get(b"transfer-encoding") == b"chunked":
            data = skip_chunks(data)
        else:
            data = data[int(values.get(b"content-length", b"0")):]
    return found
