export const MONITOR_HELP = `countersign-monitor: says whether all that a wallet has on a chain, and in the log, has a proof

For each nonce that the chain counts, it looks for the transaction or authorization (EIP-7702) that used it, for the event
that names its receipt, and judges the receipt as npm run verify does. A nonce without such a receipt means that the key is
used elsewhere. Where the service has a log, it reads that to its end, and looks for the receipt of every entry of the
wallet's key, signed messages and typed data too. Without a log it does not see what leaves no trace on the chain: signed
messages, typed data, transactions that nobody sent, and other chains.

Usage
  npm run monitor -- 0xADDRESS… --rpc URL [options]

Where things come from
  --rpc URL               a node of the chain on which the wallets are looked at; it is believed
  --events-rpc URL        a node of the chain that has the events, if that is another
  --contract ADDRESS      the ServiceAttestations contract on that chain, if no manifest names it
  --ipfs URL              an IPFS gateway; repeat for more
  --api URL               the service, which is a gateway too
  --log URL               the service that serves the log, below /log; that of --api unless given
  --witness-url URL       a witness of the log, along with those in the manifest (witnessUrls): https, or http on this
                          machine; repeat for more. The monitor asks each of them directly what it cosigned of every
                          log in the enclave's settings

What you trust
  --manifest FILE         anchors and contracts, as npm run verify takes them
  --witness KEY           witness that you require, along with those in the enclave's settings; a receipt without a log
                          then fails
  --quorum N              how many of them are enough, more than half; needs --witness
  --allow-mock            let simulated evidence pass (development only)

What is looked at
  --from-nonce N          signatures with a lower nonce are from before there were receipts
  --from-block N          the same, by the block in which they were mined; needs the state of the block before
  --grace SECONDS         how long a transaction may be mined and have no receipt yet (600);
                          the same for an entry of the log
  --max-log-entries N     so many entries of a log are read in one look, beside those that it read before (10000000);
                          a log that has more is not read
  --log-time SECONDS      how long logs are read in one look, for all wallets together (14400); after that the look ends
                          with what the chain shows, and is not complete

Other
  --follow                look again and again; says what has changed, and goes on when a wallet cannot be looked at
  --state FILE            keeps what was seen of the log from run to run: a log with two histories is found out by it,
                          and only new entries are fetched; it is written after each look
  --interval SECONDS      how long to wait between two looks (60)
  --webhook URL           POST the reports as JSON when something is found that is not complete, and when that changes
  --json                  one JSON object for each look, instead of text
  --help                  only by itself

Example
  npm run monitor -- 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 --rpc https://node.example --manifest release.json \\
    --ipfs https://gateway.example --follow --webhook https://alerts.example/hook

Exit codes; of several findings and wallets the worst, in the order 1, 4, 5, 7, 3, 6
  0  complete: every nonce, and every entry of the log, is explained by a receipt that was accepted
  1  the key of a wallet is used elsewhere, or a receipt does not verify
  2  bad input
  3  not complete, and no alarm: a receipt is pending, cannot be fetched or is not accepted; no receipt names the address;
     the log withholds something, is stale, dated ahead or does not answer; a log in the settings was not read, and too
     few witnesses state that it is unused; the node does not answer or does not show enough; the state cannot be
     written; or this program failed
  4  something is hidden: the log has a signature of a wallet's key that no receipt is of
  5  the log lies: it shows two histories, contradicts itself or a receipt, or is not cosigned
  6  unresolved: the log has a signature without a receipt whose enclave stopped, or which it reported itself; all else
     is complete
  7  not in your manifest, and no alarm: your manifest does not cover the code, configuration, machine, key or witnesses
     of a genuine receipt, or the configuration of an enclave start in the log
`
