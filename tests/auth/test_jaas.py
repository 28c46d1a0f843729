"""The parser of JAAS values: Kafka's tokens, and errors that show nothing of the value."""

import pytest

from aclbroker.broker.auth.sasl.jaas import (
    PLAIN_LOGIN_MODULE,
    JaasError,
    parse_jaas,
    parse_plain_users,
)


def test_an_entry_has_a_module_a_flag_and_options():
    entry = parse_jaas("a.b.Module REQUIRED\n  one=\"1 2\" two='3' three=four-5_6.7$ ;")
    assert entry == ("a.b.Module", "required", {"one": "1 2", "two": "3", "three": "four-5_6.7$"})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"a\"b"', 'a"b'),
        (r"'a\'b'", "a'b"),
        ('"it\'s"', "it's"),
        (r'"a\\b"', "a\\b"),
        (r'"\n\t\q"', "\n\tq"),
        (r'"\101\60\477\08"', "A0'7\x008"),
        ('"semi;colon=//x"', "semi;colon=//x"),
        ('"\N{LATIN SMALL LETTER E WITH ACUTE}\N{GRINNING FACE}"', "\xe9\U0001f600"),
        ("\xe9t\xe9", "\xe9t\xe9"),
        ('""', ""),
    ],
)
def test_values_are_unquoted_and_unescaped_as_in_java(text: str, value: str):
    assert parse_jaas(f"M required key={text};").options == {"key": value}


def test_comments_and_line_breaks_are_skipped():
    text = "/* one\n two */ M // three\n required / four\n a=b /**/ ;"
    assert parse_jaas(text) == ("M", "required", {"a": "b"})


def test_of_an_option_that_is_there_twice_the_last_counts():
    assert parse_jaas('M required a="1" a="2";').options == {"a": "2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at the end: expected a login module"),
        ("Secret", "at the end: expected a control flag"),
        ("M secret;", "at character 3: expected one of required, requisite, sufficient, optional"),
        ("M required", "at the end: expected an option or ';'"),
        ('M required a="secret"', "at the end: expected an option or ';'"),
        ('M required "secret" ;', "at character 21: expected '='"),
        ("M required a=;", "at character 14: expected a value, in quotes"),
        ("M required a=1secret;", "at character 14: expected a value, in quotes"),
        ("M required secret@x=1;", "at character 18: expected '='"),
        ('M required a="secret;', "at character 14: the quote is not closed"),
        ('M required a="secret\n";', "at character 14: the quote is not closed"),
        ('M required a="1"; N required b="secret";', "at character 19: expected nothing more"),
    ],
)
def test_errors_give_the_position_and_nothing_of_the_text(text: str, message: str):
    with pytest.raises(JaasError) as error:
        parse_jaas(text)
    assert str(error.value).startswith(message)
    assert "secret" not in str(error.value).lower()


def test_users_are_the_options_that_start_with_user():
    text = f"""{PLAIN_LOGIN_MODULE} required username="x" password="y"
        user_alice="1" user_user_bob="2" "user_c d"='3';"""
    assert parse_plain_users(text) == {"alice": "1", "user_bob": "2", "c d": "3"}


def test_users_of_another_login_module_are_not_taken():
    with pytest.raises(JaasError, match="not PlainLoginModule"):
        parse_plain_users('com.example.Login required user_alice="1";')
