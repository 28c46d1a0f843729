"""The default realm of krb5.conf."""

from pathlib import Path

import pytest

from aclbroker.broker.auth.mapping.krb5_conf import default_realm


def realm_of(tmp_path: Path, text: str) -> str:
    file = tmp_path / "krb5.conf"
    file.write_text(text, "utf-8")
    return default_realm({"KRB5_CONFIG": str(file)})


@pytest.mark.parametrize(
    ("text", "realm"),
    [
        ("[libdefaults]\n default_realm = EXAMPLE.COM\n", "EXAMPLE.COM"),
        ("[libdefaults]\ndefault_realm=EXAMPLE.COM", "EXAMPLE.COM"),
        ('[libdefaults]\n\tdefault_realm = "EXAMPLE.COM"\n', "EXAMPLE.COM"),
        ("[libdefaults]\ndefault_realm = A\ndefault_realm = B\n", "A"),
        ("[realms]\ndefault_realm = A\n[libdefaults]\ndefault_realm = B\n", "B"),
        ("[libdefaults]\n#default_realm = A\n; default_realm = B\n", ""),
        ("[libdefaults]\nX = {\n default_realm = A\n}\ndefault_realm = B\n", "B"),
        ("[libdefaults]\n}\ndefault_realm = B\n", "B"),
        ("[libdefaults]\nmy_default_realm = A\ndefault_realms = B\n", ""),
        ("default_realm = A\n", ""),
        ("", ""),
    ],
)
def test_the_default_realm_stands_in_libdefaults(tmp_path: Path, text: str, realm: str):
    assert realm_of(tmp_path, text) == realm


def test_of_several_files_the_first_that_has_a_realm_counts(tmp_path: Path):
    for name in "ab":
        (tmp_path / name).write_text(f"[libdefaults]\ndefault_realm = {name}\n")
    files = [tmp_path / "missing", tmp_path / "b", tmp_path / "a"]
    assert default_realm({"KRB5_CONFIG": ":".join(map(str, files))}) == "b"
    assert default_realm({"KRB5_CONFIG": str(files[0])}) == ""


def test_files_are_included_with_sections_of_their_own(tmp_path: Path):
    directory = tmp_path / "krb5.conf.d"
    directory.mkdir()
    (directory / "10-realms").write_text("[realms]\nX = {\n}\n")
    (directory / "20-realm.conf").write_text("[libdefaults]\ndefault_realm = INCLUDED\n")
    (directory / "05-other.bak").write_text("[libdefaults]\ndefault_realm = OTHER\n")
    include = f"includedir {directory}\n"
    assert realm_of(tmp_path, f"[libdefaults]\n{include}default_realm = LATER") == "INCLUDED"
    include = f"include {directory}/10-realms\n"
    assert realm_of(tmp_path, f"[libdefaults]\n{include}default_realm = OWN") == "OWN"


def test_a_file_that_includes_itself_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="includes files too deeply"):
        realm_of(tmp_path, f"include {tmp_path}/krb5.conf\n")


def test_a_directory_to_include_must_be_there(tmp_path: Path):
    with pytest.raises(OSError, match="missing"):
        realm_of(tmp_path, f"includedir {tmp_path}/missing\n")
