export const MONITOR_HELP = `countersign-monitor: checks that every transaction and log entry of a wallet has a proof

For each used nonce, it searches for the transaction or authorization (EIP-7702) and for the event or anchor block that
names its receipt, and verifies the receipt like npm run verify. A nonce without a valid receipt means that the key is
used elsewhere. If the service has a log, the monitor reads all of it and searches for the receipt of every entry of the
wallet's key, including signed messages and typed data. Without a log, it can't see what leaves no trace on the chain:
signed messages, typed data, unsent transactions, and other chains.

Usage
  npm run monitor -- 0xADDRESS… --rpc URL [options]

Sources
  --rpc URL               a node of the wallets' chain; its answers are trusted
  --events-rpc URL        a node of the chain with the events or checkpoints, if it's another chain
  --contract ADDRESS      the ServiceAttestations contract on that chain, if no manifest names it
  --ipfs URL              an IPFS gateway; repeat for more
  --api URL               the service, which is also a gateway
  --log URL               the service with the log, below /log (default: --api)
  --witness-url URL       a log witness, in addition to those in the manifest (witnessUrls): https, or http on this
                          machine; repeat for more. The monitor asks each one directly what it cosigned of every
                          log in the enclave's settings

Anchors
  --manifest FILE         anchors, contracts and logs on the chain, in the format of npm run verify
  --witness KEY           a required witness, in addition to those in the enclave's settings; a receipt without a
                          log then fails
  --quorum N              how many witnesses must cosign, more than half; requires --witness
  --allow-mock            accept simulated evidence (development only)

Range
  --from-nonce N          ignore lower nonces, from before there were receipts
  --from-block N          ignore earlier blocks; requires the state of the previous block
  --grace SECONDS         how long a mined transaction or log entry may have no receipt (600)
  --max-log-entries N     maximum number of new entries of a log per run (10000000); a log with more is not read
  --log-time SECONDS      maximum time for reading logs and anchor blocks per run, for all wallets together (14400);
                          after that, the report covers only the rest and is not complete

Other
  --follow                keep running and print changes; continues after errors
  --state FILE            store what was seen of the log: detects a log with two histories and downloads only new
                          entries; written after each run
  --interval SECONDS      time between runs (60)
  --webhook URL           POST the reports as JSON when one isn't complete, and on changes
  --json                  print one JSON object per run instead of text
  --help                  only without other arguments

Example
  npm run monitor -- 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 --rpc https://node.example --manifest manifest.json \\
    --ipfs https://gateway.example --follow --webhook https://alerts.example/hook

Exit codes; the worst of all findings and wallets, in the order 1, 4, 5, 7, 3, 6
  0  complete: every nonce and log entry has an accepted receipt
  1  a wallet's key is used elsewhere, or a receipt fails
  2  bad input
  3  not complete, without an alarm: a receipt is pending, unavailable or not accepted; no receipt names the address;
     an anchor block is missing; the log withholds something, is stale, dated in the future or unavailable; a log in the
     settings was not read, and too few witnesses state that it is unused; the node is unavailable or lacks data; the
     state can't be written; or this program failed
  4  hidden: the log has a signature of a wallet's key without a receipt
  5  the log is dishonest: it shows two histories, contradicts itself, a receipt or its checkpoint on the chain, or is not
     cosigned; or an anchor block is invalid
  6  unresolved: the log has a signature without a receipt whose enclave stopped, or which the enclave reported itself;
     everything else is complete
  7  not in your manifest, without an alarm: your manifest does not cover the code, configuration, machine, key or witnesses
     of a genuine receipt, or the configuration of an enclave start in the log
`
