"""What is odd about the addresses that visitors read, beyond their form. Pure; all of it is a warning.

An address at a name that is reserved for examples leads nobody anywhere. An agent on the public web that
names nobody for reports of a weakness has them sent to nobody, or published (RFC 9116 §1).
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runtime.agents.fields import SETTINGS, Kind
from runtime.agents.findings import AtSetting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NOBODYS = re.compile(r"(?i)(?:.*\.)?(?:example(?:\.(?:org|com|net))?|invalid|test)")
_AT_HOME = re.compile(r"(?i)(?:.*\.)?(?:localhost|local|internal|lan|home\.arpa)|[^.]*")
_ADDRESSES = frozenset({Kind.URL, Kind.HTTPS, Kind.CONTACT})


def questionable(found: Mapping[str, Any]) -> Iterator[AtSetting]:
    """Yield what is odd about the addresses among the checked settings, each with the setting."""
    addresses = {item.key: found.get(item.key) for item in SETTINGS if item.kind in _ADDRESSES}
    addresses["provider.url"] = (found.get("provider") or {}).get("url")
    message = "is at a name that is reserved for examples, and visitors read it"
    for key, address in addresses.items():
        if address and _NOBODYS.fullmatch(_host(address)):
            yield AtSetting(key, message, "write an address of your own", certain=False)
    contact = found.get("security_contact")
    if found.get("security_policy") and not contact:
        message = "is served with a security_contact only, and there is none"
        yield AtSetting("security_policy", message, "add `security_contact:`", certain=False)
    if not contact and is_public(found.get("public_url", "")):
        message = "is on the public web, and nothing says where to report a weakness of the agent"
        mend = "add `security_contact: mailto:…`, which /.well-known/security.txt then names"
        yield AtSetting("public_url", message, mend, certain=False)


def is_public(url: str) -> bool:
    """Say whether an address is an https one that strangers may reach, as far as its name tells."""
    host = _host(url)
    if not url.startswith("https://") or _NOBODYS.fullmatch(host):
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return not _AT_HOME.fullmatch(host)


def _host(address: str) -> str:
    if address.startswith("mailto:"):
        return address.rpartition("@")[2]
    return urlsplit(address).hostname or ""
