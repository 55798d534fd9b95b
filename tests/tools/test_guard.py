"""Where tools may connect: spellings, addresses, names (case X04)."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.tools.guard import (
    NOT_GLOBAL_4,
    NOT_GLOBAL_6,
    Guard,
    Place,
    Refused,
    checked_host,
    guard,
    host_rule,
    network,
    objection,
    place,
)

PUBLIC = "93.184.216.34"


def resolving(*answers: list[str]):
    """A resolver that gives ``answers`` in turn, the last one for ever; it counts its calls."""
    calls: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        calls.append(host)
        found = answers[min(len(calls), len(answers)) - 1]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return found

    return resolve, calls


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.com", Place("http", "example.com", 80)),
        ("HTTPS://Example.COM:8443/a?b#c", Place("https", "example.com", 8443)),
        ("https://xn--bcher-kva.example/", Place("https", "xn--bcher-kva.example", 443)),
        ("http://93.184.216.34/x", Place("http", PUBLIC, 80)),
        ("http://[2606:4700::1111]:81/", Place("http", "2606:4700::1111", 81)),
        ("http://my_host.example/", Place("http", "my_host.example", 80)),
    ],
)
def test_plain_urls_are_read(url: str, expected: Place) -> None:
    assert place(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://h/",
        "gopher://h/",
        "data:image/png;base64,AAAA",
        "//h/",
        "h/",
        "",
        "http://",
        "http:///x",
        "http:/h/",
        "http://user:pw@10.0.0.1/",
        "http://user@public.test/",
        "http://public.test\\@127.0.0.1/",
        "http://public.test#@127.0.0.1:80@x/ ",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://127.0.0.01/",
        "http://1.2.3.4.5/",
        "http://999.1.1.1/",
        "http://example.com./",
        "http://example..com/",
        "http://-example.com/",
        "http://example.123/",
        "http://[::1%25eth0]/",
        "http://[::1%eth0]/",
        "http://[fe80::1]x/",
        "http://[v1.x]/",
        "http://::1/",
        "http://①②⑦.⓪.⓪.①/",
        "http://bücher.example/",
        "http://ex%61mple.com/",
        "http://exa\tmple.com/",
        "http://example.com/\n",
        "http://example.com/a b",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:/",
        "http://example.com:80x/",
        "http://" + "a" * 64 + ".example/",
        "http://" + "a." * 130 + "example/",
    ],
)
def test_odd_urls_are_refused(url: str) -> None:
    with pytest.raises(Refused):
        place(url)


@given(st.text(alphabet=":/[]@.%?#\\0123456789abcfxABCF-_", max_size=24))
def test_what_passes_is_read_alike_by_the_client(tail: str) -> None:
    """No second reading: the HTTP client takes the same host and port out of the URL."""
    url = "http://" + tail
    try:
        found = place(url)
    except Refused:
        return
    theirs = httpx.URL(url)
    assert theirs.scheme == found.scheme
    assert theirs.port in (None, found.port)
    if ":" in found.host:
        assert ip_address(theirs.host) == ip_address(found.host)
    else:
        assert theirs.host == found.host


def spellings(address: IPv4Address) -> list[str]:
    """Ways to write an IPv4 address that some resolver or parser understands."""
    number = int(address)
    a, b, c, d = address.packed
    six = IPv6Address((0xFFFF << 32) | number)
    return [
        str(address),
        str(number),
        hex(number),
        f"{number:#o}".replace("0o", "0"),
        f"{a}.{(b << 16) + (c << 8) + d}",
        f"{a}.{b}.{(c << 8) + d}",
        f"0{a:o}.{b}.{c}.{d}",
        f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
        f"{address}.",
        f"[{six}]",
        f"[::ffff:{address}]",
        f"[::{address}]",
        f"[64:ff9b::{address}]",
        f"[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::]",
        f"[2001:0:{a:02x}{b:02x}:{c:02x}{d:02x}::]",
    ]


INSIDE = st.sampled_from(
    ["0.0.0.0", "10.1.2.3", "100.100.100.200", "127.0.0.1", "168.63.129.16", "169.254.169.254",
     "172.16.0.9", "192.0.0.192", "192.168.1.1", "224.0.0.1", "255.255.255.255"]
).map(IPv4Address)  # fmt: skip


@given(INSIDE)
def test_no_spelling_of_an_inner_address_passes(address: IPv4Address) -> None:
    for text in spellings(address):
        try:
            found = place(f"http://{text}/")
        except Refused:
            continue
        assert objection(ip_address(found.host)) is not None, text


@given(st.ip_addresses(v=4))
def test_global_addresses_pass_and_only_they(address: IPv4Address) -> None:
    inside = any(address in network(text) for text in NOT_GLOBAL_4)
    assert (objection(address) is not None) == inside
    # Python's own table may be older or newer, but never knows more about private ranges.
    if address.is_private or address.is_multicast or address.is_loopback:
        assert inside or address in network("192.0.0.0/24")


@given(st.ip_addresses(v=6))
def test_only_the_internet_s_part_of_ipv6_passes(address: IPv6Address) -> None:
    if objection(address) is None:
        assert address.is_global
        assert address.ipv4_mapped is None
        assert address.sixtofour is None
        assert address.teredo is None


@pytest.mark.parametrize("text", [*NOT_GLOBAL_4, *NOT_GLOBAL_6])
def test_each_range_is_refused_until_listed(text: str) -> None:
    for address in (network(text)[0], network(text)[-1]):
        assert objection(address) is not None
        assert objection(address, [network(str(address))]) is None


@pytest.mark.parametrize(
    "text", ["::", "::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "100::1", "5f00::1", "fc00::1",
             "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "ff02::1"]
)  # fmt: skip
def test_ipv6_beyond_the_internet_is_refused(text: str) -> None:
    assert objection(ip_address(text)) is not None


def test_a_zone_is_refused_even_where_the_network_is_listed() -> None:
    assert objection(ip_address("fe80::1%eth0"), [network("fe80::/10")]) is not None


async def test_a_name_is_resolved_once_and_all_its_addresses_are_checked() -> None:
    resolver, calls = resolving([PUBLIC, "2606:4700::1111", PUBLIC])
    found = await Guard(resolver=resolver).addresses("public.test", 80)
    assert found == (PUBLIC, "2606:4700::1111")
    assert calls == ["public.test"]


@pytest.mark.parametrize(
    "answer",
    [["127.0.0.1"], [PUBLIC, "10.0.0.1"], ["::ffff:127.0.0.1"], ["fe80::1%eth0"], ["nonsense"], []],
)
async def test_a_name_that_leads_inside_is_refused(answer: list[str]) -> None:
    resolver, _ = resolving(answer)
    with pytest.raises(Refused):
        await Guard(resolver=resolver).addresses("rebind.test", 80)


async def test_a_listed_network_may_be_reached() -> None:
    resolver, calls = resolving(["10.1.2.3"])
    assert await guard(["10.0.0.0/8"], None, resolver).addresses("in.test", 80) == ("10.1.2.3",)
    with pytest.raises(Refused):
        await guard(["10.2.0.0/16"], None, resolver).addresses("in.test", 80)
    assert await guard(["127.0.0.1"], None, resolver).addresses("127.0.0.1", 80) == ("127.0.0.1",)
    assert calls == ["in.test", "in.test"], "an address is not looked up"


async def test_the_number_of_addresses_is_bounded() -> None:
    resolver, _ = resolving([f"93.184.216.{n}" for n in range(50)])
    assert len(await Guard(resolver=resolver).addresses("many.test", 80)) == 8


@pytest.mark.parametrize(
    ("rule", "url", "covered"),
    [
        ("example.com", "https://example.com/", True),
        ("example.com", "http://EXAMPLE.com/x", True),
        ("example.com", "https://a.example.com/", False),
        ("example.com", "https://example.com:444/", False),
        ("example.com:444", "https://example.com:444/", True),
        ("example.com:444", "https://example.com/", False),
        ("*.example.com", "https://a.b.example.com/", True),
        ("*.example.com", "https://example.com/", False),
        ("*.example.com", "https://badexample.com/", False),
        ("*", "https://anything.test/", True),
        ("*", "https://anything.test:22/", False),
    ],
)
def test_hosts_that_are_listed(rule: str, url: str, covered: bool) -> None:
    assert host_rule(rule).covers(place(url)) is covered
    watch = guard([], [rule])
    if covered:
        assert watch.admit(url) == place(url)
    else:
        with pytest.raises(Refused):
            watch.admit(url)


@pytest.mark.parametrize("rule", ["", "a b", "http://x", "x:", "x:y", "x:0", "*.*", "*x", "127.1"])
def test_a_rule_that_says_nothing_is_refused(rule: str) -> None:
    with pytest.raises(Refused):
        host_rule(rule)


def test_an_empty_list_of_hosts_allows_none() -> None:
    with pytest.raises(Refused):
        guard([], []).admit("https://example.com/")


def test_networks_are_read() -> None:
    assert ip_address("10.9.9.9") in network("10.0.0.0/8")
    with pytest.raises(Refused):
        network("example.com")


def test_a_host_of_digits_must_be_an_address() -> None:
    assert checked_host("8.8.8.8") == "8.8.8.8"
    with pytest.raises(Refused):
        checked_host("8.8.8.08")
