"""Key stores made by Java's own keytool."""

from pathlib import Path

from tests.support.certificates import PASSWORD, Identity, pem
from tests.support.toolchain import require_java, run


def keytool(directory: Path, *arguments: str) -> None:
    """Run keytool, which is a part of every Java."""
    command = [require_java(), "-m", "java.base/sun.security.tools.keytool.Main"]
    run([*command, *arguments, "-noprompt", "-storepass", PASSWORD], cwd=directory)


def key_store(path: Path, identity: Identity, kind: str = "JKS") -> Path:
    """A key store of a kind with one private key, under `PASSWORD`."""
    source = path.with_suffix(".source")
    source.write_bytes(identity.pkcs12())
    arguments = ["-importkeystore", "-srckeystore", str(source), "-srcstoretype", "PKCS12"]
    options = ["-srcstorepass", PASSWORD, "-destkeystore", str(path), "-deststoretype", kind]
    keytool(path.parent, *arguments, *options)
    return path


def trust_store(path: Path, *authorities, kind: str = "JKS") -> Path:
    """A trust store of a kind, under `PASSWORD`."""
    for number, each in enumerate(authorities):
        certificate = path.with_suffix(f".{number}.pem")
        certificate.write_text(pem(each.certificate))
        options = ["-keystore", str(path), "-storetype", kind, "-file", str(certificate)]
        keytool(path.parent, "-importcert", "-alias", f"ca{number}", *options)
    return path
