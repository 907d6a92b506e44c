/** The options that help, by the message of an error that the page shows as well and that therefore names none. */
const HINTS: Readonly<Record<string, string>> = {
  'a node needs a contract to ask about': '--contract, or a --manifest that names it on this chain',
  'a transaction hash needs a node and a contract': 'this needs --rpc and --contract',
  'a CID needs a gateway': '--ipfs or --api',
  'not the collateral of this receipt': '--at',
  'judging again needs the collateral of that time': '--at needs it in --collateral',
  'more than one collateral for one time': '--at takes one --collateral of that time',
}

export function toFlagHint(message: string): string | undefined {
  return Object.hasOwn(HINTS, message) ? HINTS[message] : undefined
}
