"""Builds the package with only the standard library (PEP 517), so that it can be installed
from its folder on a machine without access to a registry:

    pip install --no-index api/clients/python
"""
import base64
import hashlib
import os
import re
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "countersign"


def _read(name):
    with open(os.path.join(HERE, name), "rb") as file:
        return file.read()


def _field(name):
    return re.search(r'^%s = "(.*)"$' % name, _read("pyproject.toml").decode(), re.M).group(1)


def _metadata():
    return ("Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\nLicense: %s\nRequires-Python: %s\nDescription-Content-Type: text/markdown\n\n"
            % (NAME, _field("version"), _field("description"), _field("license"), _field("requires-python"))).encode() + _read("README.md")


def _sources():
    return sorted(NAME + "/" + name for name in os.listdir(os.path.join(HERE, NAME)) if name.endswith((".py", ".typed")))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info = "%s-%s.dist-info/" % (NAME, _field("version"))
    files = {name: _read(name) for name in _sources()}
    files[info + "METADATA"] = _metadata()
    files[info + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: build_package\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ["%s,sha256=%s,%d" % (name, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("="), len(data))
              for name, data in files.items()]
    files[info + "RECORD"] = ("\n".join(record) + "\n%sRECORD,,\n" % info).encode()
    wheel = "%s-%s-py3-none-any.whl" % (NAME, _field("version"))
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data)  # a fixed date, so that every build gives the same bytes
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    base = "%s-%s" % (NAME, _field("version"))
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz") as archive:
        for name in ["pyproject.toml", "README.md", "build_package.py", *_sources()]:
            archive.add(os.path.join(HERE, name), base + "/" + name)
    return base + ".tar.gz"
