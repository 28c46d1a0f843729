"""A real MIT KDC on loopback, with a realm, a database and keytabs of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.kafka import free_ports
from tests.support.process import LoggedProcess
from tests.support.toolchain import missing

REALM = "ACLBROKER.TEST"
READY = "commencing operation"
READY_WITHIN = 20.0

_KRB5_CONF = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
[domain_realm]
  localhost = {realm}
"""
_KDC_CONF = """\
[logging]
  kdc = STDERR
[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {database}/principal
    key_stash_file = {database}/stash
    acl_file = {database}/kadm5.acl
    max_life = 1h
  }}
"""
_ON_DEBIAN = "is not there; .ci/packages installs it on Debian"


def require_gssapi() -> None:
    """Skip the running test without the extra `gssapi`; fail it where CI=true."""
    if importlib.util.find_spec("gssapi") is None:
        missing("the extra gssapi is not installed; make setup-gssapi installs it")


class Kdc(LoggedProcess):
    """A KDC of one realm; what runs with its `environment` uses it.

    With the `database` of another KDC it serves the same principals. With a `clock` such as `-3h`
    it lives, and what runs with its environment, three hours ago.
    """

    def __init__(
        self, directory: Path, realm: str = REALM, database: Path | None = None, clock: str = ""
    ) -> None:
        [port] = free_ports(1)
        self.realm = realm
        self.krb5_conf = directory / "krb5.conf"
        self._makes_database = database is None
        kdc_conf = directory / "kdc.conf"
        values = {"realm": realm, "port": port, "database": database or directory}
        self.krb5_conf.write_text(_KRB5_CONF.format(**values))
        kdc_conf.write_text(_KDC_CONF.format(**values))
        environment = {
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_KDC_PROFILE": str(kdc_conf),
            "KRB5RCACHEDIR": str(directory),
        }
        if clock:
            environment |= {"LD_PRELOAD": _libfaketime(), "FAKETIME": clock}
        super().__init__([_program("krb5kdc"), "-n"], directory, "krb5kdc.log", environment)

    def start(self) -> None:
        """Create the database, start the KDC and wait until it serves requests."""
        if self._makes_database:
            self._run("kdb5_util", "create", "-s", "-P", "master", "-r", self.realm)
        self.spawn()
        self.wait_until_ready(lambda: READY in self.new_log_text() or None, READY_WITHIN)

    def keytab(self, *principals: str) -> Path:
        """A file with new keys of principals (without the realm), which are made if need be."""
        path = self.directory / f"{principals[0].replace('/', '_')}.keytab"
        path.unlink(missing_ok=True)
        for principal in principals:
            for query in (f"addprinc -randkey {principal}", f"ktadd -k {path} {principal}"):
                self._run("kadmin.local", "-r", self.realm, "-q", query)
        return path

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [_program(program), *arguments],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program} {arguments} exited {done.returncode}:\n{done.stdout}")


@contextmanager
def running(kdc: Kdc) -> Iterator[Kdc]:
    """The KDC, started, and stopped at the end."""
    try:
        kdc.start()
        yield kdc
    finally:
        if kdc.process is not None:
            kdc.terminate()


def _program(name: str) -> str:
    for directory in ("/usr/sbin", *os.environ["PATH"].split(os.pathsep)):
        if (Path(directory) / name).is_file():
            return str(Path(directory) / name)
    missing(f"{name} {_ON_DEBIAN}")


def _libfaketime() -> str:
    for library in Path("/usr/lib").glob("*/faketime/libfaketime.so.1"):
        return str(library)
    missing(f"libfaketime {_ON_DEBIAN}")
