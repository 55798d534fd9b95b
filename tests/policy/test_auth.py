"""Keys as the keyring knows them."""

from __future__ import annotations

import hashlib
import hmac

from gateway.policy.auth import Keyring


def test_a_digest_is_the_hmac_of_the_key_alone_whatever_was_digested_before() -> None:
    """What stands in a store must open it again, with every later version."""
    ring = Keyring(b"pepper")
    for key in ("sk-gw-one", "", "sk-gw-two", "schlüssel", "\udcff", "sk-gw-one"):
        data = key.encode("utf-8", "surrogatepass")
        assert ring.digest(key) == hmac.digest(b"pepper", data, hashlib.sha256)
    assert Keyring(b"other").digest("sk-gw-one") != ring.digest("sk-gw-one")
