export const MONITOR_HELP = `countersign-monitor: says whether all that a wallet has on a chain has a proof

For each nonce that the chain counts, it looks for the transaction or authorization (EIP-7702) that used it, for the event
that names its receipt, and judges the receipt as npm run verify does. A nonce without such a receipt means that the key is
used elsewhere. It does not see what leaves no trace on the chain: signed messages, typed data, transactions that nobody sent,
and other chains.

Usage
  npm run monitor -- 0xADDRESS… --rpc URL [options]

Where things come from
  --rpc URL               a node of the chain on which the wallets are looked at; it is believed
  --events-rpc URL        a node of the chain that has the events, if that is another
  --contract ADDRESS      the ServiceAttestations contract on that chain, if no manifest names it
  --ipfs URL              an IPFS gateway; repeat for more
  --api URL               the service, which is a gateway too

What you trust
  --manifest FILE         anchors and contracts, as npm run verify takes them
  --allow-mock            let simulated evidence pass (development only)

What is looked at
  --from-nonce N          signatures with a lower nonce are from before there were receipts
  --from-block N          the same, by the block in which they were mined; needs the state of the block before
  --grace SECONDS         how long a transaction may be mined and have no receipt yet (600)

Other
  --follow                look again and again; says what has changed, and goes on when the node does not answer
  --interval SECONDS      how long to wait between two looks (60)
  --webhook URL           POST the reports as JSON when something is found that is not complete, and when that changes
  --json                  one JSON object for each look, instead of text
  --help                  only by itself

Example
  npm run monitor -- 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 --rpc https://node.example --manifest release.json \\
    --ipfs https://gateway.example --follow --webhook https://alerts.example/hook

Exit codes; of several wallets the worst, 1 before 3
  0  complete: every nonce is explained by a receipt that was accepted
  1  the key of a wallet is used elsewhere, or a receipt does not hold
  2  bad input
  3  not complete, and no alarm: a receipt is awaited, cannot be fetched or is not accepted, the node does not answer
     or does not show enough, or this program failed
`
