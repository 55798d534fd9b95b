"""What is found and what is not, kind by kind; and how long looking takes."""

from __future__ import annotations

import time

import pytest

from gateway.policy.redaction import checks
from gateway.policy.redaction.own import PatternRefused, own_rule
from gateway.policy.redaction.scan import BUILT_IN, KINDS, PIECE, Scanner

SCANNER = Scanner()


def found(text: str, scanner: Scanner = SCANNER) -> list[tuple[str, str]]:
    return [(span.kind, text[span.start : span.end]) for span in scanner.find(text)]


PRESENT = {
    "EMAIL": [
        "bob@acme.com",
        "first.last+tag@mail.example.co.uk",
        "müller@bücher.de",
        "o'brien@example.org",
    ],
    "PHONE": [
        "+1 (555) 123-4567",
        "+44 (0)20 7946 0958",
        "+8613812345678",
        "0049 30 1234567",
        "(555) 123-4567",
        "555-123-4567",
        "1-800-555-0199",
        "138 1234 5678",
        "13812345678",
        "010-65529988",
        "020 7946 0958",
        "01 23 45 67 89",
    ],
    "CARD": ["4111 1111 1111 1111", "5555555555554444", "3782-822463-10005", "6011000990139424"],
    "IBAN": [
        "DE89 3704 0044 0532 0130 00",
        "GB29NWBK60161331926819",
        "fr1420041010050500013m02606",
    ],
    "CN_ID": ["11010519491231002X", "110105 19491231 002x"],
    "IP": ["192.168.1.17", "10.0.0.1", "2001:db8::8a2e:370:7334", "fe80::1"],
    "SECRET": [
        "sk-proj-Ab12Cd34Ef56Gh78Ij90",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "a1B2c3D4e5" * 3 + "zzzzzz",
        "xoxb-123456789012-abcdefGHIJKL",
        "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
        "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27",
    ],
}


@pytest.mark.parametrize(("kind", "value"), [(k, v) for k, vs in PRESENT.items() for v in vs])
@pytest.mark.parametrize("frame", ["{}", "see {}, please.", "请看{}，谢谢", '{{"v": "{}"}}'])
def test_found_wherever_it_stands(kind: str, value: str, frame: str) -> None:
    assert found(frame.format(value)) == [(kind, value)]


ABSENT = [
    "logo@2x.png and node_modules/@angular/core@16.2.0",
    "git@github.com:team/repo.git",
    "y = W@x.flatten()",
    "version 1.2.3.4, v10.0.0.1, Chrome/120.0.0.0, pkg==1.2.3.4, OID 1.3.6.1.4.1.311",
    "550e8400-e29b-41d4-a716-446655440000",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "on 2024-01-15 at 10:30:22, or 01.02.2024 10:30",
    "order no. 5551234567, 订单13812345678, invoice 4000-1234",
    "1700000000 and 1700000000000",
    "4111 1111 1111 1112 and 1234567890123456",
    "DE89370400440532013001 and 110105194912310021",
    "std::vector<int> a::b 12:34:56 ::",
    "sk-learn-contrib-project-name, task-force-of-the-century, sk-xxxxxxxxxxxxxxxxxxxxxxxx",
    "hotel 1234567 has 200 rooms",
    "0x7fff5fbff8c0 and 3.14159265358979",
    "postgres://user:$PASSWORD@localhost/db",
]


@pytest.mark.parametrize("text", ABSENT)
def test_left_alone(text: str) -> None:
    assert found(text) == []


def test_a_card_is_told_from_what_stands_beside_it() -> None:
    card = ("CARD", "4111 1111 1111 1111")
    assert found("4111 1111 1111 1111 12/27") == [card]
    assert found("4111 1111 1111 1111 123") == [card]
    assert found("2345 4111 1111 1111 1111") == [card]


def test_a_phone_is_told_from_the_date_behind_it() -> None:
    assert found("+86 13812345678 2024-01-02") == [("PHONE", "+86 13812345678")]


def test_bare_digits_are_a_phone_only_by_their_words() -> None:
    assert found("call me at 5551234567") == [("PHONE", "5551234567")]
    assert found("phone no. 5551234567") == [("PHONE", "5551234567")]
    assert found("the sum is 5551234567") == []


def test_what_its_words_gave_away_is_found_without_them_too() -> None:
    text = "call 5551234567. It is 5551234567. So 5551234567, and 55512345670 is another."
    assert found(text) == [("PHONE", "5551234567")] * 3
    assert found("It is 5551234567.") == []


def test_escapes_of_source_code_are_no_part_of_an_address() -> None:
    assert found(r'print("hi\nbob@acme.com")') == [("EMAIL", "bob@acme.com")]
    assert found(r"\u8bf7bob@acme.com") == [("EMAIL", "bob@acme.com")]


def test_a_password_in_a_url() -> None:
    text = "postgres://app:s3cr3tpw@db.example.com:5432/x"
    assert found(text) == [("SECRET", "s3cr3tpw")]


def test_a_private_key_is_found_whole_and_when_it_is_cut() -> None:
    lines = "\n".join(["MIIEowIBAAKCAQEA" * 4] * 20)
    block = f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----"
    assert found(f"key:\n{block}\nthanks") == [("SECRET", block)]
    cut = block[:200]
    assert found(f"key:\n{cut}")[0] == ("SECRET", cut)


def test_overlapping_values_are_one_of_the_better_kind() -> None:
    scanner = Scanner([own_rule("TICKET", r"TCK-\d{11}"), *BUILT_IN])
    assert found("TCK-13812345678", scanner) == [("TICKET", "TCK-13812345678")]


def test_values_are_found_where_a_long_text_is_cut() -> None:
    text = ("x" * 98 + " \n") * (3 * PIECE // 100) + "bob@acme.com"
    middle = PIECE - 6
    text = text[:middle] + " bob@acme.com " + text[middle:]
    assert found(text) == [("EMAIL", "bob@acme.com")] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_an_example_here(kind: str) -> None:
    assert PRESENT[kind]


# ------------------------------------------------------------------ checks


def test_luhn_finds_every_wrong_digit() -> None:
    number = "4111111111111111"
    assert checks.luhn(number)
    for place in range(len(number)):
        wrong = str((int(number[place]) + 1) % 10)
        assert not checks.luhn(number[:place] + wrong + number[place + 1 :])


def test_check_characters_of_ids_and_accounts() -> None:
    assert checks.cn_id("11010519491231002X")
    assert not checks.cn_id("110105194912310021")
    assert checks.iban("DE89370400440532013000")
    assert not checks.iban("DE89370400440532013001")
    assert not checks.iban("DE8937040044053201300")


# ------------------------------------------------------------------ the operator's own


def test_an_own_pattern_is_found_in_any_script() -> None:
    scanner = Scanner([own_rule("CUSTOMER", r"客户\d{4,6}")])
    assert found("好的，客户12345来了，客户9999也是", scanner) == [
        ("CUSTOMER", "客户12345"),
        ("CUSTOMER", "客户9999"),
    ]


REFUSED = {
    r"(a)\1": "linear-time",
    r"a(?=b)": "linear-time",
    r"(?<!a)b": "linear-time",
    r"(": "linear-time",
    r"(a+)+b": "without an end",
    r"\d+": "without an end",
    r"x*": "without an end",
    r"\d{3,}": "without an end",
    r"\d{1,5000}": "the most is",
    r"\d{0,3}": "empty text",
}


@pytest.mark.parametrize(("pattern", "why"), REFUSED.items())
def test_patterns_that_are_not_linear_are_refused(pattern: str, why: str) -> None:
    with pytest.raises(PatternRefused, match=why):
        own_rule("X", pattern)


@pytest.mark.parametrize("pattern", [r"C\+\+ \d", r"[+*]{1,3}x", r"\Qa+\E\d", r"TCK-\d{6}"])
def test_signs_that_repeat_nothing_are_no_repetition(pattern: str) -> None:
    assert own_rule("X", pattern).kind == "X"


# ------------------------------------------------------------------ time

HOSTILE = [
    "a", "1", "1 ", "12 ", "1234 ", "5555 ", "@", "a@", "@a.bc", "a@b.", "sk-", "eyJ", "eyJa.",
    "-----BEGIN PRIVATE KEY-----", ":", ":1", "1.1.", "AB12", "AB12 ", "://a:", "Bearer ", "00 1",
    "01 ", "+1 ", "(1", "+1(((( ", "SG.", "secret_key=", "\\", '"', "<", "%40", "138 1234 5678 ",
    "phone 1 ", "0-0", "a-", "a.",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_grows_with_the_text_and_not_faster(unit: str) -> None:
    """Ten times the text takes about ten times as long (a square would take a hundred times), and
    never more CPU than a bound that is far above the 6 ms a 10 kB that are promised."""
    small, big = (_seconds((unit * size)[:size]) for size in (20_000, 200_000))
    assert big < 0.05 + 60 * small, (small, big)
    assert big < 20 * 0.05


def test_prose_is_cheap() -> None:
    prose = "The quick brown fox jumps over the lazy dog. It was 2024, said Bob. 今天很好。" * 200
    assert _seconds(prose[:10_000]) < 0.02


def _seconds(text: str) -> float:
    best = 9.0
    for _ in range(3):
        started = time.thread_time()
        SCANNER.find(text)
        best = min(best, time.thread_time() - started)
    return best
