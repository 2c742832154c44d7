"""The part that all receivers of this folder share: a server, and the lines by which a test talks to it."""

import json
import os
import ssl
import sys
import threading
from http.server import ThreadingHTTPServer

lock = threading.Lock()


def say(line):
    with lock:
        print(json.dumps(line), flush=True)


def listen(handler, cert=None, key=None):
    """Serves on a free port and returns the scheme."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    scheme = "http"
    if cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say({"listening": f"{scheme}://127.0.0.1:{server.server_address[1]}"})
    return scheme


def obey(start, use_keys):
    """Carries out the test's commands until its end of input, which ends the process."""
    for line in sys.stdin:
        command = json.loads(line)
        if "start" in command:
            start(**command["start"])
        if "keys" in command:
            use_keys(command["keys"])
            say({"keys": len(command["keys"])})
    sys.stdout.flush()
    os._exit(0)
