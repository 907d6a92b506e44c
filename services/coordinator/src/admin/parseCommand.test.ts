import { expect, test } from 'vitest'
import { type Command, parseCommand } from './parseCommand.ts'

const SLUG = 'AAAAAAAAAAAAAAAAAAA_-A'

test.each<[string[], Command]>([
  [['help'], { kind: 'help' }],
  [['--help'], { kind: 'help' }],
  [['proofs'], { kind: 'proofs', statuses: ['pending_pin', 'pending_onchain'], limit: 50, isJson: false }],
  [
    ['proofs', '--status', 'pin_failed', '--limit', '7', '--json'],
    { kind: 'proofs', statuses: ['pin_failed'], limit: 7, isJson: true },
  ],
  [['check'], { kind: 'check', out: undefined, against: undefined }],
  [['check', '--out', 'a', '--against', 'b'], { kind: 'check', out: 'a', against: 'b' }],
  [['receipt', SLUG], { kind: 'receipt', slug: SLUG, out: undefined }],
  [['collateral', SLUG, '--out', 'file'], { kind: 'collateral', slug: SLUG, out: 'file' }],
])('%j is understood', (args, command) => {
  expect(parseCommand(args)).toEqual(command)
})

test.each<[string[], RegExp]>([
  [[], /a command is missing/],
  [['prooves'], /no command prooves/],
  [['proofs', 'all'], /takes no all/],
  [['proofs', '--status', 'stuck'], /stuck is no status/],
  [['proofs', '--limit', '0'], /--limit/],
  [['proofs', '--limit', 'many'], /--limit/],
  [['proofs', '--nonsense'], /nonsense/],
  [['check', 'all'], /takes no all/],
  [['check', '--against'], /against/],
  [['receipt'], /takes one slug/],
  [['receipt', SLUG, SLUG], /takes one slug/],
  [['receipt', '../../etc/passwd'], /no slug/],
  // 22 characters of base64url, but not as 16 bytes are written: the last one carries two bits only.
  [['receipt', 'AAAAAAAAAAAAAAAAAAA_-B'], /no slug/],
])('%j is refused', (args, fault) => {
  expect(parseCommand(args)).toEqual({ kind: 'fault', fault: expect.stringMatching(fault) })
})
