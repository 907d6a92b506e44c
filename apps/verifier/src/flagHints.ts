import type { ReaderNeed } from '@countersign/verify'

/** The options that help. Errors name none, because the page shows them as well. */
export const flagHints: Readonly<Record<ReaderNeed, string>> = {
  contract: '--contract, or a --manifest that names it on this chain',
  service: 'if it is at another address, name the service with --api',
  node: 'this needs --rpc and --contract',
  gateway: '--ipfs or --api',
  time: '--at',
  'collateral-of-time': '--at needs it in --collateral',
  'one-collateral': '--at takes one --collateral of that time',
}
