import { expect, test } from 'vitest'
import { type Command, parseCommand } from './parseCommand.ts'

const SLUG = 'AAAAAAAAAAAAAAAAAAA_-A'

const ID = `msg_${'0a'.repeat(16)}`

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
  [['webhooks'], { kind: 'webhooks', status: 'dead', limit: 50, isJson: false }],
  [
    ['webhooks', '--status', 'pending', '--limit', '3', '--json'],
    { kind: 'webhooks', status: 'pending', limit: 3, isJson: true },
  ],
  [['webhooks', '--retry', ID], { kind: 'retry', id: ID }],
  [['webhooks', '--retry', 'all'], { kind: 'retry', id: undefined }],
  [['receipt', SLUG], { kind: 'receipt', slug: SLUG, out: undefined }],
  [['collateral', SLUG, '--out', 'file'], { kind: 'collateral', slug: SLUG, out: 'file' }],
  [['retention'], { kind: 'retention', isJson: false }],
  [['retention', '--json'], { kind: 'retention', isJson: true }],
  [['export', '--check', 'file.car'], { kind: 'checkExport', file: 'file.car' }],
  [
    ['export', '--from', '2026-01-31', '--to', '2026-02-01T12:30:00Z', '--out', 'file.car'],
    { kind: 'export', from: Date.UTC(2026, 0, 31), to: Date.UTC(2026, 1, 1, 12, 30), out: 'file.car' },
  ],
])('parses %j', (args, command) => {
  expect(parseCommand(args)).toEqual(command)
})

test.each<[string[], RegExp]>([
  [[], /missing command/],
  [['prooves'], /unknown command prooves/],
  [['proofs', 'all'], /unexpected argument all/],
  [['proofs', '--status', 'stuck'], /unknown status stuck/],
  [['proofs', '--limit', '0'], /--limit/],
  [['proofs', '--limit', 'many'], /--limit/],
  [['proofs', '--nonsense'], /nonsense/],
  [['check', 'all'], /unexpected argument all/],
  [['check', '--against'], /against/],
  [['webhooks', 'dead'], /unexpected argument dead/],
  [['webhooks', '--status', 'complete'], /unknown webhook status complete/],
  [['webhooks', '--retry', 'msg_1'], /--retry: expected the id/],
  [['webhooks', '--retry', ''], /--retry: expected the id/],
  [['webhooks', '--retry', ID, '--status', 'dead'], /--retry: no other option/],
  [['webhooks', '--retry', ID, '--limit', '5'], /--retry: no other option/],
  [['proofs', '--retry', ID], /--retry: not allowed with proofs/],
  [['receipt', SLUG, '--retry', 'all'], /--retry: not allowed with receipt/],
  [['retention', 'all'], /unexpected argument all/],
  [['export'], /--from, --to and --out/],
  [['export', '--from', '2026-01-31', '--to', '2026-02-01'], /--from, --to and --out/],
  [['export', '--check', 'a', '--out', 'b'], /--check/],
  [['export', '--from', 'yesterday', '--to', '2026-02-01', '--out', 'b'], /--from: invalid time yesterday/],
  [['export', '--from', '2026-01-31', '--to', '2026-02-30', '--out', 'b'], /--to: invalid time 2026-02-30/],
  // Without a time zone.
  [['export', '--from', '2026-01-31T12:00:00', '--to', '2026-02-01', '--out', 'b'], /--from/],
  [['export', '--from', '2026-02-01', '--to', '2026-02-01', '--out', 'b'], /expected a time before/],
  [['receipt'], /expected one slug/],
  [['receipt', SLUG, SLUG], /expected one slug/],
  [['receipt', '../../etc/passwd'], /invalid slug/],
  // Not canonical: the last character may carry only two bits.
  [['receipt', 'AAAAAAAAAAAAAAAAAAA_-B'], /invalid slug/],
])('rejects %j', (args, fault) => {
  expect(parseCommand(args)).toEqual({ kind: 'fault', fault: expect.stringMatching(fault) })
})
