export const HELP = `countersign-verifier: checks the public receipt of a Countersign signature

You need not trust the service. The receipt carries what the hardware signed; this program checks it
against the roots of Intel and AMD, which are built in, and against what you say you trust.

Usage
  countersign-verifier [verify] RECEIPT [options]   say whether a receipt holds
  countersign-verifier explain FILE                 say what a quote, report, receipt or collateral says

RECEIPT is one of
  a proof link         https://wallet.example/proof/<slug>, of the web app or of the service
  a slug               22 characters, with --api
  a CID                bafkrei… or ipfs://bafkrei…, with --ipfs or --api
  a gateway’s link     https://gateway.example/ipfs/bafkrei…, or https://bafkrei….ipfs.gateway.example
  a transaction hash   0x…, with --rpc and --contract
  a file               receipt.json, with the blocks that it names beside it (collateral also in --collateral),
                       or receipt.car, which has them all in it

Where things come from
  --api URL                       the service, for slugs (a proof link leads to it already)
  --ipfs URL                      an IPFS gateway, or https://*.ipfs.gateway.example; repeat for more
  --rpc URL                       a node of the chain that has the events
  --contract ADDRESS              the ServiceAttestations contract on that chain
  --collateral FILE               Intel's data about the platform; repeat for more
  --revocations FILE              AMD's revocation list of the coordinator's product, DER; it must be in date now, or at --at
  --opening FILE                  what shows an off-chain signature: its content, its bytes or both; it is sent nowhere
  --offline                       touch no network: files only

What you trust (repeat any of them; hex)
  --measurement HEX[:HEX…]        the enclave's code, 48 bytes each, 0 for one of zeros:
                                  MRTD:RTMR0:RTMR1:RTMR2:RTMR3:MRCONFIGID:MROWNER:MROWNERCONFIG
                                  A register left empty or out leaves the code unknown; only RTMR3 may be empty,
                                  where a manifest names the events compose-hash, app-id and key-provider
  --platform KIND:HEX             a machine that the enclave may run on: fmspc:HEX (a kind of machine, 6 bytes),
                                  ppid:HEX or platformInstanceId:HEX (16 bytes). Without any, all are accepted
  --config-hash HEX               configuration of the enclave, 32 bytes
  --coordinator-measurement HEX:HEX
                                  the coordinator's code: its launch measurement, 48 bytes, and HOST_DATA, 32 bytes;
                                  the measurement alone leaves the code unknown
  --coordinator-config-hash HEX   configuration of the coordinator, 32 bytes
  --coordinator-tcb LEVELS        the least patch levels of its firmware, by product of AMD: Genoa:bl=10,snp=23,ucode=84
  --coordinator-chip HEX          chip that it may run on, 64 bytes; a Milan passes only if it is listed
  --entropy-key HEX               key of the entropy source, 32 bytes, or 96 of a public beacon
  --witness KEY                   witness of the log that you require: NAME+ID+KEY as it says it, or 32 bytes
  --quorum N                      how many of them are enough, more than half; needs --witness
  --manifest FILE                 all of these in one file, with events, patch levels and contracts
  --tcb-status NAME               accept this status of Intel beside UpToDate
  --allow-mock                    let simulated evidence pass (development only)
  --maximum-event-delay SECONDS   how long after the signing its event may come (259200, which is 72 hours)
  --allow-missing-event           no event on the chain is no failure (a fresh receipt; needs --rpc)

Other
  --at TIME|now                   judge again at a time, with the --collateral of that time
  --car FILE                      write the receipt, with all of its blocks that were found, as one file
  --json                          one JSON object instead of text
  --help, --version               only by themselves: among other arguments they are bad input

Examples (in a checkout of Countersign, npm run verify -- stands for countersign-verifier)
  countersign-verifier verify https://wallet.example/proof/q8Zk2vXo1fTn0uYbWcR3dA --manifest release.json \\
    --rpc https://node.example
  countersign-verifier verify receipt.json --collateral collateral.json --manifest release.json --offline

In scripts, end the options before a name that is not yours, and never leave out the command:
  countersign-verifier verify --manifest release.json --rpc https://node.example -- "$RECEIPT"

Exit codes
  0  every required step passed, on hardware (or mock, with --allow-mock), running code you trust, and
     the chain had the receipt soon after the signing
  1  a step failed, the service says something false about the receipt, or this program failed
     ("internal error")
  2  nothing failed, but you gave no anchor for some code, setting or patch level (or only a part of one)
  3  nothing failed, but the evidence is simulated
  4  bad input: options, an unreadable file, or what is no receipt or collateral
  5  something could not be fetched, or evidence is missing
  6  all else holds, but the event came too long after the stated time of signing
  7  all else holds, but no event was seen: no --rpc, or none yet (a proof that is not complete, --allow-missing-event)
  8  there is no such proof: the service knows none under this slug

This program is not on npm yet. A package that npx finds there under its name is not ours.

Privacy: only the servers that you name, the service that a web app’s config.json names, and the gateway
that a proof names are contacted. No public IPFS gateway is asked unless you name it.
`
