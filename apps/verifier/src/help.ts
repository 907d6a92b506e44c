export const HELP = `countersign-verifier: checks the public receipt of a Countersign signature

You don't have to trust the service. The receipt contains hardware evidence. This program checks it up to the
root keys of Intel and AMD, which are built in, and compares it with the anchors that you trust.

Usage
  countersign-verifier [verify] RECEIPT [options]   verify a receipt
  countersign-verifier explain FILE                 print a quote, report, receipt or collateral

RECEIPT is one of
  a proof link         https://wallet.example/proof/<slug>, of the web app or of the service
  a slug               22 characters, with --api
  a CID                bafkrei… or ipfs://bafkrei…, with --ipfs or --api
  a gateway’s link     https://gateway.example/ipfs/bafkrei…, or https://bafkrei….ipfs.gateway.example
  a transaction hash   0x…, with --rpc, with --contract or --manifest, and with --ipfs or --api
  a file               receipt.json, with its blocks in the same folder (or collateral in --collateral),
                       or receipt.car, which includes them

Sources
  --api URL                       the service, for slugs (a proof link already names it)
  --ipfs URL                      an IPFS gateway, or https://*.ipfs.gateway.example; repeat for more
  --rpc URL                       a node of the chain that has the events, or the checkpoints of the log
  --contract ADDRESS              the ServiceAttestations contract with the events on that chain
  --collateral FILE               Intel's data about the platform; repeat for more
  --revocations FILE              AMD's revocation list for the coordinator's product, DER, valid now or at --at
  --opening FILE                  the opening of an off-chain signature (content, signature or both) or of the owner of
                                  an address; never sent
  --offline                       use no network, only files

Anchors (hex; each can be repeated)
  --measurement HEX[:HEX…]        the enclave's code, 48 bytes each, or 0 for all zeros:
                                  MRTD:RTMR0:RTMR1:RTMR2:RTMR3:MRCONFIGID:MROWNER:MROWNERCONFIG
                                  If a register is missing or empty, the code counts as unknown. Only RTMR3 may be empty,
                                  if a manifest lists the events compose-hash, app-id and key-provider
  --platform KIND:HEX             a machine for the enclave: fmspc:HEX (a model, 6 bytes),
                                  ppid:HEX or platformInstanceId:HEX (16 bytes). If none is given, all are accepted
  --config-hash HEX               hash of the enclave's configuration, 32 bytes
  --coordinator-measurement HEX:HEX
                                  the coordinator's code: its launch measurement, 48 bytes, and HOST_DATA, 32 bytes;
                                  with only the measurement, the code counts as unknown
  --coordinator-config-hash HEX   hash of the coordinator's configuration, 32 bytes
  --coordinator-tcb LEVELS        its minimum firmware levels for each AMD product: Genoa:bl=10,snp=23,ucode=84
  --coordinator-chip HEX          a chip for the coordinator, 64 bytes; Milan chips must be listed
  --entropy-key HEX               key of the entropy source, 32 bytes, or 96 for a public beacon
  --witness KEY                   a required log witness: NAME+ID+KEY as it publishes it, or 32 bytes
  --quorum N                      how many witnesses must cosign, more than half; requires --witness
  --log-contract ADDRESS:ID[:SIZE]
                                  a log whose checkpoints on the chain of --rpc count: the LogWitness contract, the log's
                                  id, 32 bytes, and the last size that counts (default: all sizes); requires --rpc
  --manifest FILE                 all of these in one file, with runtime events, firmware levels, contracts, and the ids
                                  of the logs whose checkpoints on the chain count
  --tcb-status NAME               accept this Intel status besides UpToDate
  --allow-mock                    accept simulated evidence (development only)
  --maximum-event-delay SECONDS   maximum time from signing to publication (default 259200, 72 hours)
  --allow-missing-event           accept a receipt without an event or checkpoint (for a new one; requires --rpc)

Source code (for enclaves on dstack)
  --source                        follow the links from the receipt to the commit of the enclave's code, and list
                                  the links that were not checked. If a link fails, the exit code is 1
  --compose FILE                  the operator's app-compose.json; default: search the receipt's folder, the IPFS
                                  gateways and the service for it, by hash
  --releases FOLDER|URL           the log of releases; default: the folder releases of a checkout
  --release-key KEY               the key of the log of releases, NAME+ID+KEY; default: the key in the log itself,
                                  which isn't checked
  --release-witness KEY           a witness that must have cosigned that log; repeat for more

Other
  --at TIME|now                   verify again for another time, with that time's --collateral
  --car FILE                      write the receipt and all of its blocks that were found to one file
  --json                          print one JSON object instead of text
  --help, --version               only without other arguments

Examples (node countersign-verify.mjs, or npm run verify -- in a checkout, stands for countersign-verifier)
  countersign-verifier verify https://wallet.example/proof/q8Zk2vXo1fTn0uYbWcR3dA --manifest manifest.json \\
    --rpc https://node.example
  countersign-verifier verify receipt.json --collateral collateral.json --manifest manifest.json --offline

In scripts, always write the command, and put -- before a name that you don't control:
  countersign-verifier verify --manifest manifest.json --rpc https://node.example -- "$RECEIPT"

Exit codes
  0  every required step passed, on real hardware (or mock, with --allow-mock) with code you trust, and
     the chain had the receipt soon after signing
  1  a step failed, a CAR file was changed, the service makes a false claim about the receipt, or this
     program failed ("internal error")
  2  nothing failed, but an anchor for code, settings or firmware is missing or incomplete
  3  nothing failed, but the evidence is simulated
  4  bad input: wrong options, an unreadable file, or an invalid receipt or collateral
  5  something could not be fetched, or evidence is missing
  6  everything else passed, but the receipt was published too long after the stated signing time
  7  everything else passed, but no event or checkpoint was found: no --rpc, or not published yet
     (--allow-missing-event)
  8  the service has no proof with this slug

This program is not on npm yet. A package of the same name on npm is not ours.

Privacy: this program contacts only the servers that you name, the service in a web app’s config.json, and the
gateway in a proof. It uses no public IPFS gateway unless you name one.
`
