import { developmentSeed } from '@countersign/attestation/simulator'
import type { StatementEntry } from '@countersign/log'
import { hashLeaf, toHex } from '@countersign/protocol'
import { createSimulatedLog, type SimulatedLogOptions } from '@countersign/receipt/simulator'
import { flip } from './tampered.ts'
import { changeIn, type GoldenBlocks, type TamperingV2 } from './tamperedV2.ts'

/** The log of the golden receipt. */
export const goldenLog: SimulatedLogOptions = { witnesses: 3, quorum: 2, cosigners: [0, 2], size: 11, index: 6 }

/** Copies of the golden receipt in a log, with one fault each. Most fail `log` first. */
export function createLogTamperings({ attestation, batch }: GoldenBlocks): TamperingV2[] {
  const { log = '' } = attestation
  const { statement } = attestation.signer
  const leaf = toHex(hashLeaf(statement))
  const entry = { kind: 'signature', keyId: statement.keyId, leaf, timeMs: Date.parse(statement.signedAt) } as const
  const prove = (options: SimulatedLogOptions, seed = developmentSeed) => createSimulatedLog(seed, options).prove(entry)
  const proveOther = (change: Partial<StatementEntry>) =>
    createSimulatedLog(developmentSeed, goldenLog).prove({ ...entry, ...change })
  const logKey = batch.logKey ?? ''
  const changeProof = changeIn('attestation', false)
  const inProof = (name: string, value?: string) => changeProof(name, 'log', ['log'], value)
  const inBatch = (name: string, path: string[], value?: unknown) => changeIn('batch', true)(name, 'log', path, value)
  const lines = log.split('\n')
  const [own = '', first = '', second = ''] = lines.filter((line) => line.startsWith('— '))
  /** The proof with other lines of signatures. */
  const withLines = (...signatures: string[]) =>
    log.replace(`${own}\n${first}\n${second}\n`, `${signatures.join('\n')}\n`)
  const changeLine = (from: string, to: string) => lines.map((line) => (line === from ? to : line)).join('\n')
  const other = createSimulatedLog('another service', { origin: 'log.example/enclave-b' })
  const strangers = prove({ ...goldenLog, cosigners: [0, 1] }, 'another service')
    .split('\n')
    .slice(-3, -1)
  return [
    inProof('no proof'),
    changeProof('an empty proof', 'format', ['log'], ''),
    inProof('another format', log.replace('@v1', '@v2')),
    inProof('extra data', log.replace('index', 'extra AAAA\nindex')),
    inProof('another index', changeLine('index 6', 'index 7')),
    inProof('an index outside the tree', changeLine('index 6', 'index 11')),
    inProof('an index with a leading zero', changeLine('index 6', 'index 06')),
    inProof('a path cut short', lines.filter((_, place) => place !== 2).join('\n')),
    inProof('a path too long', changeLine('index 6', `index 6\n${lines[2]}`)),
    inProof('another size', changeLine('11', '12')),
    inProof('another root', changeLine(lines[lines.indexOf('11') + 1] ?? '', lines[2] ?? '')),
    inProof('another origin', changeLine('log.example/enclave-a', 'log.example/enclave-b')),
    inProof('a line feed too many', `${log}\n`),
    inProof('a line feed too few', log.slice(0, -1)),
    inProof('carriage returns', log.replaceAll('\n', '\r\n')),

    inProof('without the log’s signature', withLines(first, second)),
    inProof('one witness too few', withLines(own, first)),
    inProof('no witness', withLines(own)),
    inProof('one witness twice in place of two', withLines(own, first, first)),
    inProof('a cosignature repeated', withLines(own, first, first, second)),
    inProof('the witnesses in another order', withLines(own, second, first)),
    inProof('the log’s signature after a witness', withLines(first, own, second)),
    inProof('the log’s signature twice', withLines(own, own, first, second)),
    inProof('a stranger’s line', withLines(own, first, second, strangers[0] ?? '')),
    inProof('strangers in place of the witnesses', withLines(own, ...strangers)),
    inProof('another signature of the log', withLines(changeEnd(own), first, second)),
    inProof('another signature of a witness', withLines(own, changeEnd(first), second)),
    inProof('a witness under another name', withLines(own, first.replace('.example', '.invalid'), second)),

    inProof('the entry of a signature that was dropped', proveOther({ kind: 'dropped' })),
    inProof('the entry of one that was not acknowledged', proveOther({ kind: 'unacknowledged' })),
    inProof('the entry of another key', proveOther({ keyId: flip(entry.keyId, 0) })),
    inProof('the entry of another statement', proveOther({ leaf: flip(leaf, 0) })),
    inProof('an entry of another time', proveOther({ timeMs: entry.timeMs + 1 })),
    inProof('the place of another entry', prove({ ...goldenLog, index: 5 }).replace('index 5', 'index 6')),
    inProof('the same witnesses below another log', prove({ ...goldenLog, origin: 'log.example/enclave-b' })),
    inProof('the log of another service', prove(goldenLog, 'another service')),

    inBatch('no key of the log', ['logKey']),
    inBatch('the key of another log', ['logKey'], other.logKey),
    inBatch('another key under the log’s name', ['logKey'], createSimulatedLog('another service', goldenLog).logKey),
    inBatch(
      'another id of the key',
      ['logKey'],
      logKey.replace(/\+[0-9a-f]{8}\+/, (id) => flip(id, 1)),
    ),
    changeIn('batch', true)('a key that is none', 'blocks', ['logKey'], 'log.example/enclave-a'),
    inBatch('no log in the settings', ['settings', 'log'], null),
    inBatch('settings with other origins', ['settings', 'log', 'origins'], ['log.example/enclave-b']),
    inBatch('settings with a higher quorum', ['settings', 'log', 'quorum'], 3),
    inBatch('settings with too low a quorum', ['settings', 'log', 'quorum'], 1),
    inBatch('settings with other witnesses', ['settings', 'log', 'witnesses'], other.setting.witnesses),
  ]
}

/** A line with another last byte of its signature. */
function changeEnd(line: string): string {
  const [prefix = '', name = '', base64 = ''] = line.split(' ')
  const bytes = Buffer.from(base64, 'base64')
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1)
  return [prefix, name, bytes.toString('base64')].join(' ')
}
