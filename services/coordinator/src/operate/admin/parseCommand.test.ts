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
  [['webhooks', 'dead'], /takes no dead/],
  [['webhooks', '--status', 'complete'], /complete is no status of a webhook/],
  [['webhooks', '--retry', 'msg_1'], /--retry: expected the id/],
  [['webhooks', '--retry', ''], /--retry: expected the id/],
  [['webhooks', '--retry', ID, '--status', 'dead'], /--retry stands alone/],
  [['webhooks', '--retry', ID, '--limit', '5'], /--retry stands alone/],
  [['proofs', '--retry', ID], /proofs takes no --retry/],
  [['receipt', SLUG, '--retry', 'all'], /receipt takes no --retry/],
  [['retention', 'all'], /takes no all/],
  [['export'], /--from, --to and --out/],
  [['export', '--from', '2026-01-31', '--to', '2026-02-01'], /--from, --to and --out/],
  [['export', '--check', 'a', '--out', 'b'], /--check/],
  [['export', '--from', 'yesterday', '--to', '2026-02-01', '--out', 'b'], /--from: yesterday/],
  [['export', '--from', '2026-01-31', '--to', '2026-02-30', '--out', 'b'], /--to: 2026-02-30/],
  // Where is it noon?
  [['export', '--from', '2026-01-31T12:00:00', '--to', '2026-02-01', '--out', 'b'], /--from/],
  [['export', '--from', '2026-02-01', '--to', '2026-02-01', '--out', 'b'], /not before/],
  [['receipt'], /takes one slug/],
  [['receipt', SLUG, SLUG], /takes one slug/],
  [['receipt', '../../etc/passwd'], /no slug/],
  // 22 characters of base64url, but not as 16 bytes are written: the last one carries two bits only.
  [['receipt', 'AAAAAAAAAAAAAAAAAAA_-B'], /no slug/],
])('%j is refused', (args, fault) => {
  expect(parseCommand(args)).toEqual({ kind: 'fault', fault: expect.stringMatching(fault) })
})
