"""The client's side of GSSAPI, so that a test can say what no real client would."""

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.kdc import Kdc

_ROOT = Path(__file__).parents[2]
_FIRST_TOKEN = """\
import base64, sys
from tests.logins.initiator import context
print(base64.b64encode(context(*sys.argv[1:]).step()).decode())
"""


def context(
    principal: str, keytab: str | Path, service: str = "kafka@localhost", mechanism: str = "krb5"
) -> Any:
    """The security context of a client of a service, with the KDC of the environment."""
    import gssapi

    mechanisms = {
        "krb5": gssapi.MechType.kerberos,
        "SPNEGO": gssapi.OID.from_int_seq("1.3.6.1.5.5.2"),
    }
    credentials = gssapi.Credentials(
        usage="initiate",
        name=gssapi.Name(principal, gssapi.NameType.kerberos_principal),
        store={"client_keytab": str(keytab), "ccache": f"FILE:{keytab}.tickets"},
    )
    return gssapi.SecurityContext(
        name=gssapi.Name(service, gssapi.NameType.hostbased_service),
        creds=credentials,
        usage="initiate",
        mech=mechanisms[mechanism],
    )


def first_token(kdc: Kdc, principal: str, keytab: Path) -> bytes:
    """The first token of a client with the environment, and so with the clock, of a KDC."""
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_TOKEN, principal, str(keytab)],
        cwd=_ROOT,
        env={**os.environ, **kdc.environment},
        stdout=subprocess.PIPE,
        check=True,
    )
    return base64.b64decode(done.stdout)
