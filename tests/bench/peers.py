"""What our figures stand beside: nginx and a trivial Bun server, on ports of their own."""
import os
import shutil
import socket
import subprocess
import tempfile
import time

import process  # of tests/e2e, found by figures.py

HERE = os.path.dirname(os.path.abspath(__file__))
BUN = os.path.join(HERE, "node_modules", ".bin", "bun")

NGINX = """
daemon off; master_process on; worker_processes 2; pid %(place)s/nginx.pid;
error_log stderr crit; %(user)s
events { worker_connections 1024; }
http {
    access_log off; keepalive_requests 1000000000; client_body_temp_path %(place)s/body;
    proxy_temp_path %(place)s/p; fastcgi_temp_path %(place)s/f; uwsgi_temp_path %(place)s/u;
    scgi_temp_path %(place)s/s; types { text/javascript js; application/json json; }
    sendfile on; tcp_nopush on; gzip off; etag on;
    server {
        listen 127.0.0.1:%(port)d reuseport;
        root %(place)s;
        location = /health {
            default_type application/json;
%(headers)s
            return 200 '%(body)s';
        }
        location / { gzip_static on; expires max; }
    }
}
"""

BUN_SERVER = """
const body = %s, headers = %s;
Bun.serve({ port: %d, hostname: "127.0.0.1", reusePort: true,
            fetch: () => new Response(body, { headers }) });
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port, seconds=15):
    until = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


class Peers:
    """nginx and Bun that answer `body` with `headers`; nginx also serves files of `place`."""

    def __init__(self, body, headers):
        self.place = tempfile.mkdtemp(prefix="ssebench-bench-")
        os.chmod(self.place, 0o755)
        self.processes = []
        self.nginx, self.bun = None, None
        if shutil.which("nginx"):
            self.start_nginx(body, headers)
        if os.path.exists(BUN):
            self.start_bun(body, headers)

    def start(self, *argv):
        self.processes.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                               stdout=subprocess.DEVNULL))

    def start_nginx(self, body, headers):
        self.nginx = free_port()
        lines = "\n".join('            add_header %s "%s";' % (k, v) for k, v in headers.items())
        conf = os.path.join(self.place, "nginx.conf")
        user = "user nobody nogroup;" if os.getuid() == 0 else ""
        with open(conf, "w", encoding="utf-8") as f:
            f.write(NGINX % {"place": self.place, "port": self.nginx, "headers": lines,
                             "body": body, "user": user})
        self.start("nginx", "-c", conf, "-p", self.place)
        wait_port(self.nginx)

    def nginx_pids(self):
        """Of its workers: the first process started here is its master."""
        return process.children(self.processes[0].pid)

    def start_bun(self, body, headers):
        import json
        self.bun = free_port()
        script = os.path.join(self.place, "server.js")
        with open(script, "w", encoding="utf-8") as f:
            f.write(BUN_SERVER % (json.dumps(body), json.dumps(
                {"Content-Type": "application/json", **headers}), self.bun))
        for _ in range(2):
            self.start(BUN, script)
        wait_port(self.bun)
        self.bun_pids = [p.pid for p in self.processes[-2:]]
        time.sleep(0.5)

    def close(self):
        for p in self.processes:
            p.terminate()
        for p in self.processes:
            p.wait()
        shutil.rmtree(self.place, ignore_errors=True)
