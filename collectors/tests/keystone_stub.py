"""A stub of Keystone that starts at once: the same modules without their work.

What a server does to its workers has nothing to do with what they serve.
Where it is loaded, it leaves a file in the server's folder.
"""

from __future__ import annotations

from pathlib import Path

MODULES = {
    "keystone/__init__.py": "",
    "keystone/server/__init__.py": "",
    "keystone/server/flask/__init__.py": "",
    "keystone/server/flask/core.py": """
def setup_app_middleware(app):
    return app
""",
    "keystone/server/wsgi.py": """
import os
import time
from pathlib import Path

from keystone.server.flask import core

class App:
    def wsgi_app(self, environ, start_response):
        time.sleep(0.003)  # long enough that another worker gets the next one
        worker = ("Worker", str(os.getpid()))
        start_response("200 OK", [("Content-Length", "2"), worker])
        return [b"ok"]

    def __call__(self, environ, start_response):
        return self.wsgi_app(environ, start_response)

def initialize_public_application():
    Path(f"loaded-{os.getpid()}").touch()
    return core.setup_app_middleware(App())
""",
    # Like Keystone's own module, it does not import Keylag.
    "keystone/wsgi/__init__.py": "",
    "keystone/wsgi/api.py": """
from keystone.server.wsgi import initialize_public_application

application = initialize_public_application()
""",
    # As with opentelemetry-distro, the SDK is set up first.
    "configurator-1.0.dist-info/METADATA": "Name: configurator\nVersion: 1.0\n",
    "configurator-1.0.dist-info/entry_points.txt": """
[opentelemetry_configurator]
configurator = opentelemetry.sdk._configuration:_OTelSDKConfigurator
""",
}


def write(folder: Path) -> Path:
    """Write the modules into a folder for PYTHONPATH."""
    for name, text in MODULES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
