"""Intel's TCB info and QE identity, and the TCB status. Input that breaks a rule raises ValueError. # evidence §5.1, §6.2 to §6.4"""

from collections import namedtuple
from functools import lru_cache

from .faults import require
from .shape import hexadecimal, integer, load, read, some, text, time

STATUSES = (
    "UpToDate", "SWHardeningNeeded", "ConfigurationNeeded", "ConfigurationAndSWHardeningNeeded",
    "OutOfDate", "OutOfDateConfigurationNeeded", "Revoked",
)
# evidence §5.1
_STATE = {"tcbStatus": text, "tcbDate": time, "advisoryIDs?": [text]}
_SVN_LEVELS = some({"tcb": {"isvsvn": integer(65_535)}, **_STATE})
_MODULE = {"mrsigner": hexadecimal(48), "attributes": hexadecimal(8), "attributesMask": hexadecimal(8)}
_COMPONENTS = some({"svn": integer(255)})
_VALIDITY = {"issueDate": time, "nextUpdate": time, "tcbEvaluationDataNumber": integer(2**32 - 1)}
_TCB_INFO = {
    "id": text, "version": integer(3, 3), "tcbType": integer(0), **_VALIDITY, "fmspc": hexadecimal(6), "pceId": hexadecimal(2),
    "tdxModule": _MODULE, "tdxModuleIdentities?": some({"id": text, **_MODULE, "tcbLevels": _SVN_LEVELS}),
    "tcbLevels": some({"tcb": {"sgxtcbcomponents": _COMPONENTS, "pcesvn": integer(65_535), "tdxtcbcomponents": _COMPONENTS}, **_STATE}),
}
_QE_IDENTITY = {
    "id": text, "version": integer(2, 2), **_VALIDITY, "miscselect": hexadecimal(4), "miscselectMask": hexadecimal(4),
    "attributes": hexadecimal(16), "attributesMask": hexadecimal(16), "mrsigner": hexadecimal(32), "isvprodid": integer(65_535),
    "tcbLevels": _SVN_LEVELS,
}
Level = namedtuple("Level", "sgx pce_svn tdx status")

@lru_cache(64)
def parse_tcb_info(source: str) -> dict:
    """The members, with a list of Level as `levels` in descending order."""
    info = read(load(source), _TCB_INFO)
    levels = []
    for item in info["tcbLevels"]:
        tcb = item["tcb"]
        sgx, tdx = (tuple(part["svn"] for part in tcb[name]) for name in ("sgxtcbcomponents", "tdxtcbcomponents"))
        require(len(sgx) == 16 and len(tdx) == 16, "invalid TCB info: expected 16 components")
        levels.append(Level(sgx, tcb["pcesvn"], tdx, item["tcbStatus"]))
    levels.sort(reverse=True)
    # evidence §6.4: no two levels are equal.
    require(info["id"] == "TDX" and not any(a[:3] == b[:3] for a, b in zip(levels, levels[1:])), "invalid TCB info: another id, or two equal levels")
    return {**info, "levels": levels}

@lru_cache(64)
def parse_qe_identity(source: str) -> dict:
    identity = read(load(source), _QE_IDENTITY)
    require(identity["id"] == "TD_QE", "invalid QE identity: another id")
    return identity

def find_module(info: dict, version: int) -> dict:
    """The module of a version; version 0 is TDX 1.0. # evidence §6.3"""
    if version == 0:
        return info["tdxModule"]
    for module in info.get("tdxModuleIdentities", []):
        if module["id"].upper() == f"TDX_{version:02X}":
            return module
    raise ValueError("TCB info without the version of this TDX module")

def find_status(item: dict, svn: int) -> str:
    """The status of the first SVN level, in Intel's order, that is at most svn. # evidence §6.4"""
    for level in item["tcbLevels"]:
        if level["tcb"]["isvsvn"] <= svn:
            return level["tcbStatus"]
    raise ValueError("no TCB level for this module or quoting enclave")

def evaluate_tcb(info: dict, qe_status: str, pck_svns: tuple[int, ...], pce_svn: int, svns: bytes, svns_now: bytes | None) -> str:
    """The TCB status. svns is TEE_TCB_SVN, svns_now TEE_TCB_SVN_2. # evidence §6.4"""
    version = svns[1]
    start = 2 if version else 0

    def fits(limits: tuple, values) -> bool:
        return all(limit <= value for limit, value in zip(limits, values))

    on_sgx = [level for level in info["levels"] if fits(level.sgx, pck_svns) and level.pce_svn <= pce_svn]
    on_tdx = [level for level in on_sgx if fits(level.tdx[start:], svns[start:])]
    require(on_tdx, "no TCB level for this platform")
    sgx, status = on_sgx[0].status, on_tdx[0].status
    module_status = find_status(find_module(info, version), svns[0]) if version else "UpToDate"
    if qe_status in ("ConfigurationNeeded", "OutOfDateConfigurationNeeded"):
        qe_status = "OutOfDate"
    parts = {module_status, qe_status}
    # The platform, module and QE must not be Revoked; an SGX level that is Revoked only prevents a relaunch.
    is_accepted = sgx in STATUSES and status in STATUSES[:-1] and parts <= {"UpToDate", "OutOfDate"}
    require(is_accepted, f"TCB status: {status}, module {module_status}, QE {qe_status}")

    if "OutOfDate" in parts:
        status = "OutOfDateConfigurationNeeded" if "Configuration" in status else "OutOfDate"
    is_outdated = sgx in ("OutOfDate", "OutOfDateConfigurationNeeded", "Revoked")
    if svns_now and (qe_status, module_status) == ("UpToDate", "OutOfDate") and not is_outdated and _is_current(info, svns_now):
        needs_configuration = "Configuration" in sgx or "Configuration" in status
        status = "TDRelaunchAdvisedConfigurationNeeded" if needs_configuration else "TDRelaunchAdvised"
    return status

def _is_current(info: dict, svns: bytes) -> bool:
    """Whether the module that is loaded now is current. # evidence §6.4 "Relaunch" """
    minimum = highest = info["levels"][0].tdx
    if svns[1]:
        minimum = [find_module(info, svns[1])["tcbLevels"][0]["tcb"]["isvsvn"]]
    return svns[0] >= minimum[0] and svns[2] >= highest[2]
