import { parseQuote, parseReport, parseSnpTcb, toSnpProduct, toTdMeasurement } from '@countersign/attestation'
import {
  type AttestationReceiptV2,
  fromHex,
  hashEnclaveConfig,
  isTerminalProofStatus,
  toHex,
} from '@countersign/protocol'
import { type AnyReceipt, ATTESTATION_V2, anchorSteps, type StepId } from '@countersign/receipt'
import {
  adviseOn,
  type Claim,
  describeSigned,
  describeVerdict,
  type Fact,
  findLies,
  groupSteps,
  isMissing,
  isMockStep,
  isSourceFailed,
  nameSigned,
  type SourceTrace,
  toMeasurementText,
  toMinimumTcbTexts,
  toPrintable,
  toPrintableJson,
  type VerdictDescription,
  type VerifierStep,
} from '@countersign/verify'
import { exitCodes } from './exitCodes.ts'
import type { CliOutcome } from './verify.ts'

const SGR = { red: '31;1', green: '32;1', yellow: '33;1', dim: '2' } as const
const TONES = { good: 'green', warning: 'yellow', bad: 'red' } as const

type Color = keyof typeof SGR
type Paint = (color: Color, text: string) => string

const MARKS = {
  pass: ['✓', 'green'],
  fail: ['✗', 'red'],
  skip: ['–', 'yellow'],
} as const
const DETAIL_INDENT = 7
const LABEL_COLUMNS = 12

type PrintOptions = { isColored: boolean }

/** Prints each step as it finishes, numbered and under its group's heading. */
export function createStepPrinter(options: PrintOptions): (step: VerifierStep) => string {
  const paint = createPaint(options)
  let count = 0
  let heading: string | undefined
  return (step) => {
    const title = groupSteps([step]).find(({ steps }) => steps.length > 0)?.title
    const isNew = title !== heading
    heading = title
    count += 1
    return `${isNew ? `${title}\n` : ''}${printStep(step, count, paint)}\n`
  }
}

/** Prints the verdict below the steps. */
export function printVerdict(outcome: CliOutcome, options: PrintOptions): string {
  const paint = createPaint(options)
  const links = outcome.trace === undefined ? [] : printSource(outcome.trace, outcome, paint)
  return [...links, '', '─'.repeat(COLUMNS), ...printConclusion(outcome, paint), ''].join('\n')
}

/** Prints each link between the receipt and the source, then the source that they lead to. */
function printSource(
  { links, settings, source }: SourceTrace,
  { isMock }: Pick<CliOutcome, 'isMock'>,
  paint: Paint,
): string[] {
  const unchecked = links.filter(({ status }) => status === 'skip').length
  const answer =
    source === undefined
      ? 'The links lead to no commit.'
      : `Commit ${source.commit} of version ${source.release}, recorded at ${source.recordedAt}, image digest ${source.digest}. ${unchecked} links were not checked.`
  return [
    'The source code',
    ...links.map((link, index) => printStep(link, index + 1, paint)),
    ...(settings.length === 0 ? [] : ['   Settings in app-compose.json:']),
    ...settings.map(({ name, value }) => `${' '.repeat(DETAIL_INDENT)}${name}=${toPrintable(value)}`),
    `${isMock ? `${paint('red', 'MOCK evidence')}: ` : ''}${say(answer)}`,
  ]
}

function createPaint({ isColored }: PrintOptions): Paint {
  return (color, text) => (isColored ? `\u001b[${SGR[color]}m${text}\u001b[0m` : text)
}

/** Prints the result as JSON. */
export function printVerdictJson(outcome: CliOutcome): string {
  const { verdict, conclusion, exitCode, isMock, isKnownCode, timeBound, cid, steps, receipt, unwritten = [] } = outcome
  const signed = receipt && toSigned(receipt, outcome)
  const log = outcome.logged && { log: outcome.logged }
  const source = outcome.trace && { source: outcome.trace }
  const anchor = outcome.anchor && { anchor: toAnchor(outcome.anchor) }
  const falseClaims = findLies(outcome.claims).map(({ member, text, detail }) => ({ member, text, detail }))
  const checked = { verdict, conclusion, exitCode, isMock, isKnownCode, timeBound, cid, steps }
  const problems = outcome.problems.concat(unwritten)
  return `${toPrintableJson({ ...checked, ...signed, ...log, ...anchor, ...source, falseClaims, problems })}\n`
}

/** Leaves out the block and the path. */
function toAnchor({ given: { contract, id, size }, log, isFinal }: NonNullable<CliOutcome['anchor']>) {
  return { contract, id, size, isFinal, ...(log && { txHash: log.transactionHash, blockNumber: log.blockNumber }) }
}

/** Leaves out the signature: for off-chain content, it's as valuable as a key. */
function toSigned(receipt: AnyReceipt, { content: shown, owner, policy }: CliOutcome) {
  if (receipt.version !== ATTESTATION_V2) return { transaction: toTransaction(receipt.transaction) }
  const { policy: policyHash } = receipt.signer.statement
  const budget = receipt.kind === 'transaction' ? receipt.subject.budget : shown?.budget
  const vault = policyHash === null ? {} : { vault: { policyHash, policy, ...(budget && { budget }) } }
  return { ...toSignedOfKind(receipt, { shown, owner }), ...vault }
}

type Opened = { shown: CliOutcome['content']; owner: CliOutcome['owner'] }

function toSignedOfKind(receipt: AttestationReceiptV2, { shown, owner }: Opened) {
  const { kind } = receipt
  if (kind === 'transaction') return { kind, transaction: toTransaction(receipt.subject) }
  const { address: wallet, signedAt } = receipt.signer.statement
  if (kind === 'revocation') return { kind, revocation: { wallet, signedAt, key: receipt.subject.key } }
  if (kind === 'address') {
    return { kind, address: { wallet, signedAt, owner: { commitment: receipt.subject.owner, opened: owner } } }
  }
  if (kind === 'authorization') {
    const { chainId, address, nonce } = receipt.subject
    return { kind, authorization: { chainId, address, nonce, wallet, signedAt } }
  }
  const opened = shown && { kind: shown.kind, digest: shown.digest, content: shown.content }
  return { kind, offChain: { wallet, signedAt, commitment: receipt.subject.commitment, opened } }
}

function toTransaction(transaction: Extract<AnyReceipt, { transaction: unknown }>['transaction']) {
  const { chainId, txHash, from, to, nonce, value, signedAt } = transaction
  return { chainId, txHash, from, to, nonce, value, signedAt }
}

function printStep(
  { title, status, detail }: Pick<VerifierStep, 'title' | 'status' | 'detail'>,
  number: number,
  paint: Paint,
): string {
  const [mark, color] = MARKS[status]
  // The step's title may claim real hardware, so simulated evidence is marked.
  const suffix = status === 'pass' && isMockStep({ detail }) ? ` ${paint('red', '(MOCK)')}` : ''
  const heading = `${String(number).padStart(2)} ${paint(color, mark)} ${title}${suffix}`
  return `${heading}\n${paint('dim', wrapText(toPrintable(detail), { indent: DETAIL_INDENT }))}`
}

function printConclusion(outcome: CliOutcome, paint: Paint): string[] {
  const { verdict, receipt, exitCode, isKnownCode, isMockRefused } = outcome
  const lies = findLies(outcome.claims)
  const context = { anchorSource: 'visitor', lies: lies.length, status: outcome.proof?.status } as const
  const { tone, title, sentence, notes } = describeWithSource(outcome, describeVerdict(outcome, context))
  const hasConclusion = verdict !== 'failed' && verdict !== 'incomplete'
  return [
    printTitle(title, TONES[tone], paint),
    say([sentence, ...notes].join(' ')),
    ...(exitCode === exitCodes.mock ? ['To accept it for development, add --allow-mock.'] : []),
    ...printLies(lies),
    ...(verdict === 'failed' ? printFailure(outcome) : []),
    ...(verdict === 'incomplete' ? printMissingEvidence(outcome).map(say) : []),
    ...(receipt === undefined ? [] : printSigned(outcome, receipt)),
    ...(hasConclusion && !isKnownCode && !isMockRefused ? ['', ...printMissingAnchors(outcome)] : []),
    ...(hasConclusion ? printTimeBound(outcome).map(say) : []),
  ]
}

/** A failed link must not stand next to a good title. */
function describeWithSource({ trace }: CliOutcome, words: VerdictDescription): VerdictDescription {
  if (trace === undefined || !isSourceFailed(trace) || words.tone === 'bad') return words
  const sentence = `A link to the source code failed. Of the receipt itself: ${words.title}.`
  return { tone: 'bad', title: 'Not verified: the code is not that of a release', sentence, notes: [] }
}

function say(text: string): string {
  return wrapText(toPrintable(text), { indent: 0 })
}

/** MOCK is red in every title. */
function printTitle(title: string, color: Color, paint: Paint): string {
  const parts = title.split('MOCK').map((part) => (part === '' ? '' : paint(color, part)))
  return parts.join(paint('red', 'MOCK'))
}

function printLies(lies: readonly Claim[]): string[] {
  return lies.flatMap(({ member, text, detail }) => [
    printLabelled('It says', `${text} (${member})`),
    printLabelled('Found', detail),
  ])
}

function printSigned(outcome: CliOutcome, receipt: AnyReceipt): string[] {
  const { title, sentence, warnings, facts } = describeSigned({ ...outcome, receipt })
  return [
    '',
    `${nameSigned(outcome)}: ${title}`,
    say(sentence),
    ...warnings.map((warning) => printLabelled('Warning', warning)),
    ...facts.flatMap(printFact),
  ]
}

/** Prints short values next to their name. Keeps a message's spaces. */
function printFact({ name, value }: Fact): string[] {
  if (name.length < LABEL_COLUMNS && !value.includes('\n')) return [`${name.padEnd(LABEL_COLUMNS)}${value}`]
  return [`${name}:`, ...value.split('\n').map((line) => `    ${line}`)]
}

function printFailure({ steps, anchor }: CliOutcome): string[] {
  const failed = steps.filter(({ status }) => status === 'fail')
  const [first] = failed
  if (first === undefined) return []
  const { meaning, action } = adviseOn(first, { anchor })
  const others = failed.length === 1 ? '' : ` (and ${failed.length - 1} more, mostly for the same reason)`
  const code = first.code === undefined ? '' : ` [${first.code}]`
  return [
    wrapText(`Step ${steps.indexOf(first) + 1} failed${others}: ${first.title}.`, { indent: 0 }),
    printLabelled('Reason', `${first.detail}${code}`),
    printLabelled('It means', meaning),
    printLabelled('What to do', action),
  ]
}

/** A label, with its text in a second column. */
function printLabelled(label: string, text: string): string {
  const indent = LABEL_COLUMNS
  return `${label.padEnd(indent)}${wrapText(toPrintable(text), { indent }).slice(indent)}`
}

function printMissingEvidence(outcome: CliOutcome): string[] {
  const { steps, problems } = outcome
  const hasOwnVerdict = (id: string) => [...anchorSteps, 'time-bound'].includes(id)
  const missing = steps.find((step) => isMissing(step) && !hasOwnVerdict(step.id))
  const tried = problems.map((problem) => `Tried: ${problem}.`)
  if (missing === undefined) return tried
  const what = `Step ${steps.indexOf(missing) + 1} was skipped: ${missing.title}. ${missing.detail}`
  return [what, ...tried, ...helpWith(missing.id, outcome)]
}

function helpWith(id: VerifierStep['id'], { view, anchor }: CliOutcome): string[] {
  if (id === 'event' && anchor?.log !== undefined) return ['Add a gateway that has the anchor block with --ipfs URL.']
  if (id === 'blocks' || id === 'vault-policy')
    return ['Add a gateway that has the blocks with --ipfs URL, or use a CAR file.']
  if (id !== 'collateral' || view === undefined) return []
  return [`Add the block ${view.signer.collateral} with --collateral FILE, or a gateway that has it with --ipfs URL.`]
}

/** Why the signing time is unknown, and what to do about it. */
function printTimeBound(outcome: CliOutcome): string[] {
  if (outcome.timeBound === 'bounded') return []
  const found = outcome.steps.find(({ id }) => id === 'time-bound')
  return [...(found === undefined ? [] : [`Signing time: ${found.detail}`]), helpWithTime(outcome)]
}

function helpWithTime({ timeBound, isEventMissing, proof }: CliOutcome): string {
  if (timeBound === 'late') {
    return 'To accept this delay, add --maximum-event-delay SECONDS.'
  }
  if (!isEventMissing)
    return 'To check the chain, add a node with --rpc, and its contracts with --manifest or --contract.'
  const hasEnded = proof !== undefined && isTerminalProofStatus(proof.status)
  return hasEnded
    ? 'Publishing failed, so it will not be on the chain.'
    : 'A new receipt may not be published yet. Try again in a few minutes.'
}

/** Prints each missing anchor's option and the value in the evidence. */
function printMissingAnchors({ steps, view }: CliOutcome): string[] {
  if (view === undefined) return []
  const { signer, entropy, coordinator } = view
  const report = parseReport(fromHex(coordinator.selfAttestation.reportHex))
  const product = report.cpuid === undefined ? undefined : toSnpProduct(report.cpuid)
  const found: Partial<Record<StepId, [what: string, flag: string, value: string]>> = {
    measurement: [
      'the enclave’s code, in every register (a manifest’s events can replace RTMR3)',
      '--measurement',
      toMeasurementText(toTdMeasurement(parseQuote(fromHex(signer.quoteHex)).body)),
    ],
    config: ['the enclave’s configuration', '--config-hash', toHex(hashEnclaveConfig(signer.config))],
    'entropy-key': ['the entropy source’s key', '--entropy-key', entropy.publicKey],
    'coordinator-measurement': [
      'the coordinator’s code (measurement and HOST_DATA, which its host sets)',
      '--coordinator-measurement',
      `${toHex(report.measurement)}:${toHex(report.hostData)}`,
    ],
    ...(product === undefined
      ? {}
      : {
          'coordinator-policy': [
            'the coordinator’s minimum firmware levels',
            '--coordinator-tcb',
            toMinimumTcbTexts({ [product]: parseSnpTcb(report.reportedTcb, product) }).join(' '),
          ],
        }),
    'coordinator-config': [
      'the coordinator’s configuration',
      '--coordinator-config-hash',
      coordinator.selfAttestation.configHash,
    ],
  }
  const lines = steps.flatMap(({ id, status }) => {
    const entry = status === 'skip' && id !== 'subject' ? found[id] : undefined
    return entry === undefined ? [] : [`  ${entry[0]}:`, `    ${entry[1]} ${entry[2]}`]
  })
  return [
    'Some anchors are missing. The evidence has these values:',
    ...lines,
    wrapText(
      'Compare each value with the published release or your own build. Values copied from here prove nothing.',
      { indent: 0 },
    ),
  ]
}

const COLUMNS = 100

/** Breaks text at spaces. Keeps a long hash on one line, so that it can be copied. */
export function wrapText(text: string, { indent, columns = COLUMNS }: { indent: number; columns?: number }): string {
  const margin = ' '.repeat(indent)
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/ +/).filter((part) => part !== '')) {
    if (line !== '' && indent + line.length + 1 + word.length > columns) {
      lines.push(line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line].map((item) => `${margin}${item}`).join('\n')
}
