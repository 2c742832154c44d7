"""The quick starts of the README run as they are written, each in a process and a folder of its own."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap

from support import ROOT
from support.signing import EDS_SECRET_TEXT, SECRET
from support.trace import TestCase, covers

from test_client import Recorder

README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- quick start: (\w+) -->\n```python\n(.*?)```", README, re.DOTALL))

URL = "https://hooks.example.com/webhooks"
WSGI_DRIVER = """
    import app
    from test_wsgi import call, environ_of

    def post(signed):
        return call(app.{app}, environ_of(signed))
"""
ASGI_DRIVER = """
    import app
    from test_asgi import run

    def post(signed):
        x = run(app.{app}, signed)
        return x.status, x.headers, x.body
"""


class QuickStarts(TestCase):
    def run_block(self, name, driver, env=None):
        """Writes the block to app.py and runs the driver beside it; answers what was printed."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "app.py"), "w", encoding="utf-8") as file:
                file.write(BLOCKS[name])
            os.mkdir(os.path.join(folder, "mysite"))
            with open(os.path.join(folder, "mysite", "settings.py"), "w", encoding="utf-8") as file:
                file.write("SECRET_KEY = 'x'\nALLOWED_HOSTS = ['*']\nROOT_URLCONF = 'mysite.urls'\n")
            with open(os.path.join(folder, "mysite", "urls.py"), "w", encoding="utf-8") as file:
                file.write("urlpatterns = []\n")
            path = os.pathsep.join([folder, str(ROOT / "tests"), str(ROOT / "src")])
            finished = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(driver)],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path, "WEBHOOK_SECRET": SECRET, "GODWIT_TRACE_DIR": "", **(env or {})},
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.assertEqual(finished.returncode, 0, finished.stderr)
            return finished.stdout

    def receives(self, name, driver, app, sign, good, printed, env=None):
        """A good delivery is taken, its repeat replayed, a forged one refused."""
        program = textwrap.dedent(driver).format(app=app) + textwrap.dedent(f"""
            from support.signing import *
            signed = {sign}
            first, repeat = post(signed), post({sign})
            assert (first[0], repeat[0]) == ({good}, {good}), (first, repeat)
            assert "idempotency-replayed" not in first[1] and repeat[1]["idempotency-replayed"] == "true"
            forged = post(Signed(signed.headers, signed.body + b" ", signed.url))
            assert forged[0] == 401, forged
        """)
        out = self.run_block(name, program, env)
        self.assertEqual(out.count(printed), 1, out)

    def need(self, module):
        if importlib.util.find_spec(module) is None:
            self.skipTest(f"{module} is not installed")

    @covers("CCW-SEC-12", "CCW-RCV-4")
    def test_secrets_come_from_the_environment(self):
        self.assertEqual(
            set(BLOCKS), {"wsgi", "asgi", "flask", "django", "fastapi", "transactional", "inbox", "cybercube", "client"}
        )
        for name, block in BLOCKS.items():
            with self.subTest(name):
                self.assertNotIn("whsec_", block)
                self.assertRegex(block, r'os\.environ\["(WEBHOOK_SECRET|GODWIT_API_KEY)"\]')
        with self.assertRaisesRegex(AssertionError, "WEBHOOK_SECRET|secret"):
            self.run_block("wsgi", "import app", {"WEBHOOK_SECRET": ""})

    def test_wsgi(self):
        sign = f'sign_cybercube(cybercube_event("evt_1"), url="{URL}")'
        self.receives("wsgi", WSGI_DRIVER, "application", sign, 200, "project.created")

    def test_asgi(self):
        sign = f"sign_eds('{{\"a\":1}}', key=KEY, event_type='order.created', url='{URL}')"
        env = {"WEBHOOK_SECRET": EDS_SECRET_TEXT, "WEBHOOK_KEY_ID": "key-1"}
        self.receives("asgi", ASGI_DRIVER, "app", sign, 204, "{'a': 1}", env)

    def test_flask(self):
        self.need("flask")
        sign = "replace(sign_standard('{\"type\":\"a.b\"}', message_id='m1'), url='https://hooks.example.com/webhooks')"
        self.receives("flask", WSGI_DRIVER, "app", sign, 204, "a.b {")
        out = self.run_block("flask", "import app; print(app.app.test_client().get('/').text)")
        self.assertIn("my application", out)

    def test_django(self):
        self.need("django")
        sign = "replace(sign_github('{\"a\":1}', delivery_id='d1'), url='https://hooks.example.com/webhooks')"
        self.receives("django", WSGI_DRIVER, "application", sign, 200, "push {'a': 1}")

    def test_fastapi(self):
        self.need("fastapi")
        body = '\'{"id":"e","type":"job.completed"}\''
        sign = f"sign_ojs({body}, delivery_id='del_1', url='https://hooks.example.com/webhooks')"
        self.receives("fastapi", ASGI_DRIVER, "app", sign, 200, "job.completed {")

    def test_transactional(self):
        sign = f"replace(sign_standard('{{\"type\":\"a.b\"}}', message_id='m1'), url='{URL}')"
        driver = textwrap.dedent(WSGI_DRIVER) + textwrap.dedent("""
            def show():
                with app.database.reading() as tx:
                    print(tx.rows("SELECT event FROM payments"))

            import atexit
            atexit.register(show)
        """)
        self.receives("transactional", driver, "application", sign, 204, "[('m1',)]")

    def test_inbox(self):
        program = textwrap.dedent(WSGI_DRIVER).format(app="application") + textwrap.dedent("""
            from support.signing import *
            for _ in range(2):
                signed = sign_cybercube(cybercube_event("evt_1"), url="https://hooks.example.com/webhooks")
                assert post(signed)[0] == 200
            print("acknowledged")
            assert app.worker.drain() == 1
            assert app.inbox.states()["done"] == 1
        """)
        self.assertEqual(self.run_block("inbox", program).split("\n")[:2], ["acknowledged", "processing evt_1"])

    @covers("CCW-SDK-9")
    def test_cybercube(self):
        program = """
            import app
            from support.signing import *
            good = sign_cybercube(cybercube_event("evt_1"))
            assert app.endpoint(good.body, good.headers) == (200, {"received": True})
            assert app.endpoint(good.body, {}) == (401, {"error": "Invalid signature format"})
            assert app.endpoint(good.body + b" ", good.headers) == (401, {"error": "Signature mismatch"})
            broken = sign_cybercube("[]")
            assert app.endpoint(broken.body, broken.headers) == (500, {"error": "Internal error"})
        """
        self.assertIn("project.created", self.run_block("cybercube", program))

    def test_client(self):
        recorder = Recorder(self)
        recorder.answers = [
            (202, {}, json.dumps({"id": "evt_7"}).encode()),
            (200, {}, json.dumps({"items": [{"id": "evt_7", "type": "order.created"}]}).encode()),
        ]
        out = self.run_block("client", "import app", {"GODWIT_URL": recorder.url, "GODWIT_API_KEY": "gw_key"})
        self.assertEqual(out.split(), ["evt_7", "evt_7", "order.created"])
        self.assertEqual(recorder.requests[0][2]["idempotency-key"], '"order-7-created-1"')
