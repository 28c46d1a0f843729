"""Key stores are read as Java and Kafka read them."""

import contextlib
import random
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclbroker.broker.auth.tls import jks, key_stores, pkcs12
from aclbroker.broker.auth.tls.context import server_tls
from aclbroker.broker.auth.tls.entries import KeyStoreError
from aclbroker.broker.auth.tls.key_manager import served
from aclbroker.broker.auth.tls.settings import TlsError, TlsSettings
from tests.auth.tls.conftest import Ask
from tests.support.certificates import (
    PASSWORD,
    Authority,
    Identity,
    pem,
    pkcs12_truststore,
    self_signed,
)
from tests.support.tables import check_each, examples
from tests.support.toolchain import require

TYPES = ("JKS", "PKCS12")
ALIASES = ("localhost", "Broker-1", "kafka", "caroot", "z", "ssl", "new cert", "ÄÖ", "mykey", "b2")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """PKCS#12 files with one self-signed certificate each, by their kind and number."""
    directory = tmp_path_factory.mktemp("sources")
    made = {}
    for name in ("RSA-1", "RSA-2", "EC-1", "EC-2", "Ed25519-1"):
        made[name] = directory / name
        made[name].write_bytes(self_signed(f"CN={name}", kind=name.partition("-")[0]).pkcs12())
    return made


def test_of_several_keys_those_serve_that_java_would_pick(
    oracle: Ask, sources: dict[str, Path], tmp_path: Path, every_case: bool
) -> None:
    def check(seed: int) -> None:
        _check_served(oracle, sources, tmp_path / f"keystore-{seed}", seed)

    check_each(range(20 if every_case else 4), check)


def _check_served(oracle: Ask, sources: dict[str, Path], store: Path, seed: int) -> None:
    choose = random.Random(seed)
    # In PKCS12 the order of the file decides between aliases of one bucket, in JKS it does not.
    kind = "PKCS12" if seed % 4 else "JKS"
    aliases = choose.sample(ALIASES, choose.randint(1, 3 if kind == "JKS" else len(ALIASES)))
    entries = [f"key:{alias}:{sources[choose.choice(list(sources))]}" for alias in aliases]
    oracle("make", kind, store, PASSWORD, PASSWORD, *entries)
    ours = served(key_stores.read_key_store(_with_keys(store)).keys)
    javas = oracle("served", kind, store, PASSWORD)
    assert sorted([each.rfc4514_string() for each in _subjects(entry.chain)] for entry in ours) == (
        sorted(javas.values())
    )


def _with_keys(path: Path) -> TlsSettings:
    return TlsSettings(keystore_location=str(path), keystore_password=PASSWORD)


def _subjects(certificates):
    return [each.subject for each in certificates]


@pytest.mark.parametrize("kind", TYPES)
def test_a_key_comes_with_the_chain_that_java_sends(
    oracle: Ask, identity: Identity, tmp_path: Path, kind: str
) -> None:
    source, store = tmp_path / "source", tmp_path / "keystore"
    source.write_bytes(identity.pkcs12())
    oracle("make", kind, store, PASSWORD, PASSWORD, f"key:broker:{source}")
    [entry] = key_stores.read_key_store(_with_keys(store)).keys
    names = [each.rfc4514_string() for each in _subjects(entry.chain)]
    assert names == oracle("served", kind, store, PASSWORD)["EC"]
    assert names == ["CN=localhost", "CN=Intermediate"]


@pytest.mark.parametrize("said", TYPES)
@pytest.mark.parametrize("really", TYPES)
def test_either_format_is_read_whichever_the_type_says(
    oracle: Ask, identity: Identity, tmp_path: Path, said: str, really: str
) -> None:
    source, store = tmp_path / "source", tmp_path / "keystore"
    source.write_bytes(identity.pkcs12())
    oracle("make", really, store, PASSWORD, PASSWORD, f"key:broker:{source}")
    settings = [
        f"ssl.keystore.type={said}",
        f"ssl.keystore.location={store}",
        f"ssl.keystore.password={PASSWORD}",
    ]
    assert oracle("configure", *settings)
    ours = TlsSettings(keystore_type=said, keystore_location=str(store), keystore_password=PASSWORD)
    assert len(server_tls(ours).certificates) == 1


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("password", [PASSWORD, ""])
def test_what_a_trust_store_holds_is_trusted(
    oracle: Ask, authority: Authority, tmp_path: Path, kind: str, password: str
) -> None:
    paths = []
    for number, each in enumerate((authority, Authority("Second"))):
        paths.append(tmp_path / f"{number}.pem")
        paths[-1].write_text(pem(each.certificate))
    store = tmp_path / "truststore"
    entries = [f"cert:{path.stem}:{path}" for path in paths]
    oracle("make", kind, store, PASSWORD, PASSWORD, *entries)
    settings = TlsSettings(truststore_location=str(store), truststore_password=password or None)
    if kind == "PKCS12" and not password:
        # Java finds an empty store, since it cannot decrypt it, and then refuses every client.
        with pytest.raises(TlsError, match="password"):
            key_stores.read_trust_store(settings)
        return
    trusted = key_stores.read_trust_store(settings)
    assert trusted is not None
    assert sorted(each.rfc4514_string() for each in _subjects(trusted)) == sorted(
        oracle("trusted", kind, store, password)
    )


@pytest.mark.parametrize("kind", TYPES)
def test_of_a_private_key_in_a_trust_store_the_own_certificate_is_trusted(
    oracle: Ask, sources: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    store = tmp_path / "store"
    oracle("make", kind, store, PASSWORD, PASSWORD, f"key:broker:{sources['EC-1']}")
    settings = TlsSettings(truststore_location=str(store), truststore_password=PASSWORD)
    [trusted] = key_stores.read_trust_store(settings) or ()
    assert [trusted.subject.rfc4514_string()] == oracle("trusted", kind, store, PASSWORD)


def test_a_jks_store_with_a_key_and_its_chain_trusts_the_own_certificate_alone(
    oracle: Ask, identity: Identity, tmp_path: Path
) -> None:
    source, store = tmp_path / "source", tmp_path / "store"
    source.write_bytes(identity.pkcs12())
    oracle("make", "JKS", store, PASSWORD, PASSWORD, f"key:broker:{source}")
    settings = TlsSettings(truststore_location=str(store), truststore_password=PASSWORD)
    [trusted] = key_stores.read_trust_store(settings) or ()
    assert [trusted.subject.rfc4514_string()] == oracle("trusted", "JKS", store, PASSWORD)


def test_a_pkcs12_store_with_a_key_and_its_chain_does_not_tell_whom_to_trust(
    identity: Identity, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.write_bytes(identity.pkcs12())
    settings = TlsSettings(truststore_location=str(store), truststore_password=PASSWORD)
    with pytest.raises(TlsError, match="holds a private key"):
        key_stores.read_trust_store(settings)


def test_a_key_of_a_jks_store_may_have_a_password_of_its_own(
    oracle: Ask, identity: Identity, tmp_path: Path
) -> None:
    source, store = tmp_path / "source", tmp_path / "keystore"
    source.write_bytes(identity.pkcs12())
    oracle("make", "JKS", store, PASSWORD, "key-secret", f"key:broker:{source}")
    settings = TlsSettings(keystore_location=str(store), keystore_password=PASSWORD)
    assert server_tls(replace(settings, key_password="key-secret")).certificates
    with pytest.raises(TlsError, match="does not open the private key") as caught:
        server_tls(replace(settings, key_password="guessed"))
    assert caught.value.setting == "ssl.key.password"
    with pytest.raises(TlsError) as caught:
        server_tls(settings)
    assert caught.value.setting == "ssl.keystore.password"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, identity: Identity, authority: Authority):
    """Files that settings of the table below name."""
    directory = tmp_path_factory.mktemp("files")
    other = Authority("Other").issue()
    contents = {
        "key.p12": identity.pkcs12(),
        "trust.p12": pkcs12_truststore(authority.certificate),
        "key.pem": identity.pem().encode(),
        "encrypted.pem": (_encrypted(identity) + identity.chain_pem()).encode(),
        "after.pem": (identity.chain_pem() + identity.key_pem()).encode(),
        "noted.pem": f"Bag Attributes\n  name: x\n{identity.pem()}\nthe end".encode(),
        "reversed.pem": (identity.key_pem() + pem(*reversed(identity.chain))).encode(),
        "two-keys.pem": (other.key_pem() + identity.pem()).encode(),
        "no-key.pem": identity.chain_pem().encode(),
        "no-chain.pem": identity.key_pem().encode(),
        "trust.pem": pem(authority.certificate, other.certificate).encode(),
        "noise": b"\x00noise\xff" * 40,
        "empty": b"",
    }
    for name, content in contents.items():
        (directory / name).write_bytes(content)
    return directory


def _encrypted(identity: Identity) -> str:
    """The key encrypted with PBES1, since Java reads PBES2 in PEM since release 19 only."""
    scheme = ["-v1", "PBE-SHA1-3DES", "-passout", "pass:key-secret"]
    command = [require("openssl"), "pkcs8", "-topk8", *scheme]
    return subprocess.run(
        command, input=identity.key_pem(), capture_output=True, text=True, check=True
    ).stdout


KEY_P12 = "ssl.keystore.location=key.p12 ssl.keystore.password=store-secret"
PEM_TYPE = "ssl.keystore.type=PEM ssl.truststore.type=PEM"
# Each is accepted, or refused, by Kafka too. In a value @FILE is the text of a file.
SAME_AS_KAFKA = f"""
{KEY_P12}
{KEY_P12} ssl.keystore.type=PKCS12
{KEY_P12} ssl.key.password=store-secret
{KEY_P12} ssl.key.password=guessed
{KEY_P12} ssl.keystore.type=PEM
{KEY_P12} ssl.keystore.key=@no-chain.pem ssl.keystore.certificate.chain=@no-key.pem
{KEY_P12} ssl.truststore.location=trust.p12 ssl.truststore.password=store-secret
{KEY_P12} ssl.truststore.location=trust.p12 ssl.truststore.password=guessed
{KEY_P12} ssl.truststore.location=missing ssl.truststore.password=guessed
{KEY_P12} ssl.truststore.location=noise ssl.truststore.password=guessed
{KEY_P12} ssl.truststore.password=store-secret
{KEY_P12} ssl.truststore.certificates=@trust.pem
{KEY_P12} ssl.truststore.type=PEM ssl.truststore.certificates=@trust.pem
{KEY_P12} ssl.truststore.type=PEM ssl.truststore.location=trust.pem
{KEY_P12} ssl.truststore.type=PEM ssl.truststore.location=trust.pem ssl.truststore.password=x
{KEY_P12} ssl.truststore.type=PEM ssl.truststore.location=trust.pem \
    ssl.truststore.certificates=@trust.pem
{KEY_P12} ssl.truststore.type=PEM ssl.truststore.certificates=@trust.pem ssl.truststore.password=x
{KEY_P12} ssl.truststore.type=PEM ssl.truststore.location=no-chain.pem
{KEY_P12} ssl.truststore.type=PEM ssl.truststore.location=empty
{KEY_P12} ssl.truststore.type=PEM ssl.truststore.location=noise
ssl.keystore.location=key.p12
ssl.keystore.location=key.p12 ssl.keystore.password=guessed
ssl.keystore.location=missing ssl.keystore.password=guessed
ssl.keystore.location=empty ssl.keystore.password=guessed
ssl.keystore.location=noise ssl.keystore.password=guessed
ssl.keystore.password=store-secret
{PEM_TYPE} ssl.keystore.location=key.pem
{PEM_TYPE} ssl.keystore.location=key.pem ssl.keystore.password=x
{PEM_TYPE} ssl.keystore.location=key.pem ssl.key.password=x
{PEM_TYPE} ssl.keystore.location=encrypted.pem
{PEM_TYPE} ssl.keystore.location=encrypted.pem ssl.key.password=x
{PEM_TYPE} ssl.keystore.location=encrypted.pem ssl.key.password=key-secret
{PEM_TYPE} ssl.keystore.location=after.pem
{PEM_TYPE} ssl.keystore.location=noted.pem
{PEM_TYPE} ssl.keystore.location=reversed.pem
{PEM_TYPE} ssl.keystore.location=two-keys.pem
{PEM_TYPE} ssl.keystore.location=no-key.pem
{PEM_TYPE} ssl.keystore.location=no-chain.pem
{PEM_TYPE} ssl.keystore.location=noise
{PEM_TYPE} ssl.keystore.location=missing
{PEM_TYPE} ssl.keystore.key=@no-chain.pem
{PEM_TYPE} ssl.keystore.certificate.chain=@no-key.pem
{PEM_TYPE} ssl.keystore.key=@no-chain.pem ssl.keystore.certificate.chain=@no-key.pem
{PEM_TYPE} ssl.keystore.key=@encrypted.pem ssl.keystore.certificate.chain=@no-key.pem \
    ssl.key.password=key-secret
{PEM_TYPE} ssl.keystore.key=@no-chain.pem ssl.keystore.certificate.chain=@no-key.pem \
    ssl.keystore.password=x
{PEM_TYPE} ssl.keystore.key=@no-chain.pem ssl.keystore.certificate.chain=@no-key.pem \
    ssl.keystore.location=key.pem
{PEM_TYPE} ssl.keystore.key=not-pem ssl.keystore.certificate.chain=@no-key.pem
""".replace("\\\n    ", "")


def _ours(line: str, files: Path) -> TlsSettings:
    values: dict[str, Any] = {}
    for word in line.split():
        name, _, value = word.partition("=")
        field = name.removeprefix("ssl.").replace(".", "_")
        values[field] = (files / value[1:]).read_text() if value.startswith("@") else value
        if field.endswith("_location"):
            values[field] = str(files / value)
    return TlsSettings(**values)


def _kafkas(line: str, files: Path) -> list[str]:
    words = []
    for word in line.split():
        name, _, value = word.partition("=")
        if value.startswith("@"):
            value = (files / value[1:]).read_text().replace("\n", "|")
        words.append(f"{name}={files / value if name.endswith('.location') else value}")
    return words


def test_kafka_accepts_the_same_settings(oracle: Ask, files: Path) -> None:
    def check(line: str) -> None:
        refusal = _refusal(_ours(line, files))
        if refusal is not None:
            assert refusal.setting in line or refusal.setting.endswith(".password")
            for secret in ("guessed", "key-secret", PASSWORD):
                assert secret not in str(refusal)
        assert (refusal is None) is oracle("configure", *_kafkas(line, files))

    check_each(SAME_AS_KAFKA.strip().splitlines(), check)


def _refusal(settings: TlsSettings) -> TlsError | None:
    try:
        server_tls(settings)
    except TlsError as error:
        return error
    return None


# What Kafka starts with, to fail each client, or to let in more than was meant.
STRICTER = {
    "": ("ssl.keystore.location", "needs a private key"),
    f"{KEY_P12} ssl.client.auth=required": ("ssl.client.auth", "no certificate to trust"),
    f"{KEY_P12} ssl.client.auth=requested": ("ssl.client.auth", "no certificate to trust"),
    f"{PEM_TYPE} ssl.keystore.key=@no-chain.pem ssl.keystore.certificate.chain=@trust.pem": (
        "ssl.keystore.certificate.chain",
        "do not match",
    ),
    "ssl.keystore.location=trust.p12 ssl.keystore.password=store-secret": (
        "ssl.keystore.location",
        "no private key",
    ),
}


@pytest.mark.parametrize("line", STRICTER)
def test_what_could_serve_nobody_or_trust_anybody_is_refused(files: Path, line: str) -> None:
    setting, reason = STRICTER[line]
    text = line
    if "@trust.pem" in line:
        # A chain of certificates, of which the first is another's.
        text = line.replace("@trust.pem", "@other-chain.pem")
        (files / "other-chain.pem").write_text(self_signed("CN=other").chain_pem())
    with pytest.raises(TlsError, match=reason) as caught:
        server_tls(_ours(text, files))
    assert caught.value.setting == setting


def test_line_breaks_of_inline_pem_may_be_lost(
    oracle: Ask, files: Path, identity: Identity
) -> None:
    key, chain = (text.replace("\n", " ") for text in (identity.key_pem(), identity.chain_pem()))
    settings = TlsSettings(keystore_type="PEM", keystore_key=key, keystore_certificate_chain=chain)
    assert server_tls(settings).certificates == (identity.certificate,)
    words = ["ssl.keystore.type=PEM", f"ssl.keystore.key={key}"]
    assert oracle("configure", *words, f"ssl.keystore.certificate.chain={chain}")


def test_an_encrypted_key_may_be_of_pbes2_too(identity: Identity, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text(identity.pem("key-secret"))
    settings = TlsSettings(
        keystore_type="PEM",
        keystore_location=str(tmp_path / "key.pem"),
        key_password="key-secret",
    )
    assert server_tls(settings).certificates == (identity.certificate,)


def test_a_key_too_small_for_openssl_is_refused_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "weak.pem").write_text(self_signed("CN=weak", kind="weak RSA").pem())
    settings = TlsSettings(keystore_type="PEM", keystore_location=str(tmp_path / "weak.pem"))
    with pytest.raises(TlsError, match="too small") as caught:
        server_tls(settings)
    assert caught.value.setting == "ssl.keystore.location"


def test_no_representation_of_settings_shows_a_secret(identity: Identity) -> None:
    settings = TlsSettings(
        keystore_password="secret-1",
        key_password="secret-2",
        keystore_key=identity.key_pem(),
        truststore_password="secret-3",
    )
    for secret in ("secret-", "PRIVATE"):
        assert secret not in repr(settings) + str(settings)


@pytest.fixture(scope="module")
def jks_store(
    oracle: Ask, sources: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> bytes:
    path = tmp_path_factory.mktemp("damaged") / "store"
    oracle("make", "JKS", path, PASSWORD, PASSWORD, f"key:broker:{sources['EC-1']}")
    return path.read_bytes()


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_a_damaged_store_is_refused_and_breaks_nothing(jks_store: bytes, data: st.DataObject):
    changed = bytearray(jks_store)
    # The magic number stays: without it the bytes are no JKS store.
    for position in data.draw(st.lists(st.integers(4, len(changed) - 1), min_size=1, max_size=4)):
        changed[position] ^= data.draw(st.integers(1, 255))
    cut = bytes(changed[: data.draw(st.integers(4, len(changed)))])
    if cut == jks_store:
        return
    with pytest.raises(KeyStoreError):
        jks.read_jks(cut, PASSWORD, PASSWORD)
    with contextlib.suppress(KeyStoreError):
        jks.read_jks(cut, None, PASSWORD)


@settings(max_examples=examples(100), deadline=None)
@given(data=st.binary(max_size=200))
def test_bytes_that_are_no_store_are_refused(data: bytes) -> None:
    with pytest.raises(KeyStoreError):
        pkcs12.read_key_store(data, PASSWORD, PASSWORD)


def test_pkcs12_with_rc2_as_java_8_wrote_it_is_read(identity: Identity, tmp_path: Path) -> None:
    store = tmp_path / "old.p12"
    schemes = ["-legacy", "-certpbe", "PBE-SHA1-RC2-40", "-keypbe", "PBE-SHA1-3DES"]
    command = [require("openssl"), "pkcs12", "-export", *schemes, "-macalg", "sha1"]
    subprocess.run(
        [*command, "-passout", f"pass:{PASSWORD}", "-out", str(store)],
        input=identity.pem(),
        text=True,
        check=True,
    )
    assert server_tls(_with_keys(store)).certificates == (identity.certificate,)


def test_no_key_is_left_in_a_file(identity: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python reads keys from files only: what it reads is encrypted."""
    read = []
    load = ssl.SSLContext.load_cert_chain

    def spy(self, certfile, keyfile=None, password=None):
        read.append((certfile, Path(certfile).read_text()))
        return load(self, certfile, keyfile, password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", spy)
    settings = TlsSettings(
        keystore_type="PEM",
        keystore_key=identity.key_pem(),
        keystore_certificate_chain=identity.chain_pem(),
    )
    server_tls(settings)
    monkeypatch.delattr("os.memfd_create")
    server_tls(settings)
    (in_memory, first), (on_disk, second) = read
    assert "ENCRYPTED PRIVATE KEY" in first
    assert "ENCRYPTED PRIVATE KEY" in second
    assert "memfd" not in on_disk
    assert not Path(in_memory).exists()
    assert not Path(on_disk).exists()
