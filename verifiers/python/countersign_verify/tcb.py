"""Intel's TCB info and QE identity, and the TCB status. Input that breaks a rule raises ValueError. # evidence §5.1, §6.2 to §6.4"""

import json
import re
from collections import namedtuple
from functools import lru_cache

from .codec import parse_time

STATUSES = (
    "UpToDate", "SWHardeningNeeded", "ConfigurationNeeded", "ConfigurationAndSWHardeningNeeded",
    "OutOfDate", "OutOfDateConfigurationNeeded", "Revoked",
)


# svns: (the 16 SGX components, pcesvn, the 16 TDX components), or (isvsvn,)
Level = namedtuple("Level", "svns status")
Module = namedtuple("Module", "signer attributes levels")
# levels are in descending order; identities are pairs of id and module.
TcbInfo = namedtuple("TcbInfo", "issued next_update evaluation fmspc pce_id module identities levels")
# misc and attributes are pairs of value and mask.
QeIdentity = namedtuple("QeIdentity", "issued next_update evaluation misc attributes signer product levels")


@lru_cache(64)
def parse_tcb_info(text: str) -> TcbInfo:
    info = _object(text)
    if (info.get("id"), _number(info, "version"), _number(info, "tcbType")) != ("TDX", 3, 0):
        raise ValueError("invalid TCB info: expected TDX, version 3")
    levels = []
    for item in _list(info, "tcbLevels"):
        tcb = _get(item, "tcb", dict)
        svns = (_components(tcb, "sgxtcbcomponents"), _number(tcb, "pcesvn", 65_535), _components(tcb, "tdxtcbcomponents"))
        levels.append(_level(item, svns))
    levels.sort(key=lambda level: level.svns, reverse=True)
    if any(a.svns == b.svns for a, b in zip(levels, levels[1:])):  # evidence §6.4
        raise ValueError("invalid TCB info: two equal levels")
    identities = ()
    if "tdxModuleIdentities" in info:
        identities = tuple((_get(item, "id", str), _module(item, _svn_levels(item))) for item in _list(info, "tdxModuleIdentities"))
    return TcbInfo(
        issued=_time(info, "issueDate"), next_update=_time(info, "nextUpdate"),
        evaluation=_number(info, "tcbEvaluationDataNumber", 2**32 - 1),
        fmspc=_hex(info, "fmspc", 6), pce_id=_hex(info, "pceId", 2),
        module=_module(_get(info, "tdxModule", dict), ()), identities=identities, levels=tuple(levels),
    )


@lru_cache(64)
def parse_qe_identity(text: str) -> QeIdentity:
    identity = _object(text)
    if (identity.get("id"), _number(identity, "version")) != ("TD_QE", 2):
        raise ValueError("invalid QE identity: expected TD_QE, version 2")
    return QeIdentity(
        issued=_time(identity, "issueDate"), next_update=_time(identity, "nextUpdate"),
        evaluation=_number(identity, "tcbEvaluationDataNumber", 2**32 - 1),
        misc=(_hex(identity, "miscselect", 4), _hex(identity, "miscselectMask", 4)),
        attributes=(_hex(identity, "attributes", 16), _hex(identity, "attributesMask", 16)),
        signer=_hex(identity, "mrsigner", 32), product=_number(identity, "isvprodid", 65_535), levels=_svn_levels(identity),
    )


def find_module(info: TcbInfo, version: int) -> Module:
    """The module of a version; version 0 is TDX 1.0. # evidence §6.3"""
    if version == 0:
        return info.module
    for name, module in info.identities:
        if name[:4] == "TDX_" and name[4:].lower() == f"{version:02x}":
            return module
    raise ValueError("TCB info without the version of this TDX module")


def evaluate_tcb(
    info: TcbInfo, qe_level: Level, pck_svns: tuple[int, ...], pce_svn: int, svns: bytes, svns_now: bytes | None
) -> str:
    """The TCB status. svns is TEE_TCB_SVN, svns_now TEE_TCB_SVN_2. # evidence §6.4"""
    version = svns[1]
    start = 2 if version else 0

    def fits(limits: tuple, values) -> bool:
        return all(limit <= value for limit, value in zip(limits, values))

    on_sgx = [level for level in info.levels if fits(level.svns[0], pck_svns) and level.svns[1] <= pce_svn]
    on_tdx = [level for level in on_sgx if fits(level.svns[2][start:], svns[start:])]
    if not on_tdx:
        raise ValueError("no TCB level for this platform")
    sgx, platform, module_status, qe_status = on_sgx[0], on_tdx[0], "UpToDate", qe_level.status
    if version:
        module_status = find_level(find_module(info, version).levels, svns[0]).status
    if qe_status in ("ConfigurationNeeded", "OutOfDateConfigurationNeeded"):
        qe_status = "OutOfDate"
    parts = {module_status, qe_status}
    # A Revoked part fails with any status that is not listed; a Revoked SGX level only bars a relaunch.
    if sgx.status not in STATUSES or platform.status not in STATUSES[:-1] or parts - {"UpToDate", "OutOfDate"}:
        raise ValueError(f"TCB status: {platform.status}, module {module_status}, QE {qe_level.status}")

    status = platform.status
    if "OutOfDate" in parts:
        status = "OutOfDateConfigurationNeeded" if "Configuration" in status else "OutOfDate"
    is_advised = (
        svns_now is not None and qe_status == "UpToDate" and module_status == "OutOfDate"
        and sgx.status not in ("OutOfDate", "OutOfDateConfigurationNeeded", "Revoked") and _is_current(info, svns_now)
    )
    if is_advised:
        needs_configuration = "Configuration" in sgx.status or "Configuration" in status
        status = "TDRelaunchAdvisedConfigurationNeeded" if needs_configuration else "TDRelaunchAdvised"
    return status


def _is_current(info: TcbInfo, svns: bytes) -> bool:
    """Whether the module that is loaded now is current. # evidence §6.4 "Relaunch" """
    highest = info.levels[0].svns[2]
    if svns[1] == 0:
        minimum = highest[0]
    else:
        try:
            minimum = find_module(info, svns[1]).levels[0].svns[0]
        except ValueError:
            return False
    return svns[0] >= minimum and svns[2] >= highest[2]


def find_level(levels: tuple[Level, ...], svn: int) -> Level:
    """The first SVN level, in Intel's order, that is at most svn. # evidence §6.4"""
    for level in levels:
        if level.svns[0] <= svn:
            return level
    raise ValueError("no TCB level for this module or quoting enclave")


def _module(item: dict, levels: tuple[Level, ...]) -> Module:
    _hex(item, "attributesMask", 8)
    return Module(_hex(item, "mrsigner", 48), _hex(item, "attributes", 8), levels)


def _svn_levels(item: dict) -> tuple[Level, ...]:
    return tuple(_level(level, (_number(_get(level, "tcb", dict), "isvsvn", 65_535),)) for level in _list(item, "tcbLevels"))


def _level(item: dict, svns: tuple) -> Level:
    if not all(isinstance(name, str) for name in _get({"advisoryIDs": [], **item}, "advisoryIDs", list)):
        raise ValueError("invalid advisoryIDs: expected texts")
    _time(item, "tcbDate")
    return Level(svns, _get(item, "tcbStatus", str))


def _components(tcb: dict, name: str) -> tuple[int, ...]:
    components = _list(tcb, name)
    if len(components) != 16:
        raise ValueError(f"invalid {name}: expected 16 components")
    return tuple(_number(component, "svn", 255) for component in components)


def _object(text: str) -> dict:
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("invalid JSON: nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("invalid JSON: expected an object")
    return value


def _list(item: dict, name: str) -> list[dict]:
    value = item.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(member, dict) for member in value):
        raise ValueError(f"invalid {name}: expected a list of objects")
    return value


def _get(item: dict, name: str, kind: type):
    if not isinstance(item.get(name), kind):
        raise ValueError(f"invalid {name}: expected a value of type {kind.__name__}")
    return item[name]


def _number(item: dict, name: str, maximum: int = 2**32 - 1) -> int:
    value = item.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= maximum:
        raise ValueError(f"invalid {name}: expected an integer up to {maximum}")
    return value


def _hex(item: dict, name: str, length: int) -> bytes:
    text = _get(item, name, str)
    if not re.fullmatch(f"[0-9A-Fa-f]{{{2 * length}}}", text):
        raise ValueError(f"invalid {name}: expected {length} bytes of hex")
    return bytes.fromhex(text)


def _time(item: dict, name: str) -> int:
    text = _get(item, name, str)
    return parse_time(text[:-1] + ".000Z" if text.endswith("Z") else text)
