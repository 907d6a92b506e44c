import {
  describeError,
  describePhase,
  describeSigned,
  describeStep,
  describeVerdict,
  findLies,
  groupSteps,
  isMockStep,
  isSimulated,
  nameSigned,
  type Outcome,
  type ReaderNeed,
  toPrintable,
  type VerifierStep,
} from '@countersign/verify'
import { readFiles, readJob } from './readJob.ts'
import type { Report } from './startWorker.ts'

const hints: Partial<Record<ReaderNeed, string>> = {
  contract: 'Enter the contract’s address, or choose a manifest that names it on this chain.',
  service: 'Enter the address of the service.',
  node: 'Enter the address of a node of the chain, and the contract’s address.',
  gateway: 'Enter the address of an IPFS gateway.',
}

const marks = { pass: ['good', 'Passed'], fail: ['bad', 'Failed'], skip: ['skipped', 'Skipped'] } as const

let worker: Worker | undefined

export function startPage(): void {
  const form = find<HTMLFormElement>('form')
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void start()
  })
  form.addEventListener('input', clear)
  // Without this, a browser would open dropped files instead of this page. Fields for files accept drops themselves.
  document.addEventListener('dragover', (event) => isFileField(event.target) || event.preventDefault())
  document.addEventListener('drop', (event) => {
    if (isFileField(event.target)) return
    event.preventDefault()
    if (!event.dataTransfer?.files.length) return
    find<HTMLInputElement>('files').files = event.dataTransfer.files
    clear()
  })
}

function isFileField(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement && target.type === 'file'
}

/** Stops a run and removes its results, which would otherwise appear next to other input. */
function clear(): void {
  worker?.terminate()
  worker = undefined
  for (const id of ['verdict', 'steps', 'problem']) find(id).replaceChildren()
  say('')
}

/** Verifies the receipt that the form names. */
async function start(): Promise<void> {
  clear()
  say('Starting…')
  const running = new Worker(URL.createObjectURL(new Blob([find('script').textContent])))
  worker = running
  const read = (id: string) => find<HTMLInputElement>(id).value.trim()
  const filesOf = (id: string) => [...(find<HTMLInputElement>(id).files ?? [])]
  const manifests = filesOf('manifest')
  const steps: VerifierStep[] = []
  let doing = ''
  running.addEventListener('error', ({ message }) =>
    fail({ code: 'internal', message: message ?? 'the verifier could not start', need: undefined }),
  )
  running.addEventListener('message', ({ data }: MessageEvent<Report>) => {
    if (worker !== running) return
    switch (data.kind) {
      case 'progress':
        if (data.progress.kind === 'phase') doing = describePhase(data.progress.phase)
        else steps.push(data.progress.step)
        say(`${doing} ${steps.length} done.`)
        return showSteps(steps)
      case 'done':
        return finish(data, manifests)
      case 'failed':
        return fail(data)
    }
  })
  try {
    const chosen = { receipt: await readFiles(filesOf('files')), manifests: await readFiles(manifests) }
    const [subject, gateway, node, contract] = [read('subject'), read('gateway'), read('node'), read('contract')]
    if (worker === running) running.postMessage(readJob(chosen, { subject, gateway, node, contract }))
  } catch (error) {
    const need = error instanceof Error && 'need' in error ? (error.need as ReaderNeed | undefined) : undefined
    if (worker === running) fail({ ...describeError(error), need })
  }
}

function fail({ code, message, need }: Pick<Extract<Report, { kind: 'failed' }>, 'code' | 'message' | 'need'>): void {
  const isChanged = code === 'car_mismatch'
  const title = isChanged ? 'Not verified: this CAR file was changed or damaged' : 'Nothing was verified'
  const advice = isChanged ? 'Don’t rely on it.' : (need && hints[need]) || ''
  const text = `${message.charAt(0).toUpperCase()}${message.slice(1)}. ${advice}`
  say('')
  find('steps').replaceChildren()
  find('problem').replaceChildren(
    create('div', 'tone bad', create('h2', '', title), create('p', '', toPrintable(text))),
  )
}

function finish({ outcome, unused }: Extract<Report, { kind: 'done' }>, manifests: readonly File[]): void {
  const { steps, claims, problems, proof, receipt, verdict, isKnownCode } = outcome
  const lies = findLies(claims)
  const words = describeVerdict(outcome, { anchorSource: 'visitor', lies: lies.length, status: proof?.status })
  const failed = steps.find(({ status }) => status === 'fail')
  const needsManifest = verdict !== 'failed' && !isKnownCode
  const lines = [
    words.sentence,
    ...manifests.map(({ name }) => `Compared with your manifest ${name}.`),
    ...lies.map(({ text, detail }) => `The service says: ${text} Your browser found: ${detail}`),
    ...(failed === undefined ? [] : [`Failed: ${failed.title}. ${failed.detail}`]),
    ...(needsManifest
      ? ['Choose a manifest that lists all code and settings, to compare them with this receipt.']
      : []),
    ...problems.map((problem) => `Couldn’t fetch: ${problem}.`),
    ...unused.map((name) => `Not used, because the receipt doesn’t name it: ${name}.`),
    ...words.notes,
  ]
  const paragraphs = lines.map((line) => create('p', '', toPrintable(line)))
  find('verdict').replaceChildren(
    create('div', `tone ${words.tone}`, create('h2', '', words.title), ...paragraphs),
    ...(receipt === undefined ? [] : describeSubject({ ...outcome, receipt })),
  )
  showSteps(steps, outcome)
  const count = (status: VerifierStep['status']) => steps.filter((step) => step.status === status).length
  const counts = `${count('pass')} passed, ${count('fail')} failed, ${count('skip')} skipped`
  say(`${words.title}. ${steps.length} checks: ${counts}.`)
  find('verdict').focus()
}

function describeSubject(outcome: Outcome & { receipt: object }): HTMLElement[] {
  const { title, sentence, warnings, facts } = describeSigned(outcome)
  return [
    create('h2', '', `${nameSigned(outcome)}: ${title}`),
    create('p', '', sentence),
    ...warnings.map((warning) => create('p', 'tone warning', `Warning: ${warning}`)),
    create('dl', '', ...facts.flatMap(({ name, value }) => [create('dt', '', name), create('dd', '', value)])),
  ]
}

/** While the checks run, shows their titles. Explains them at the end, because simulated evidence changes the words. */
function showSteps(steps: readonly VerifierStep[], outcome?: Outcome): void {
  const groups = groupSteps(steps).filter((group) => group.steps.length > 0)
  find('steps').replaceChildren(
    ...groups.flatMap(({ title, steps: ofGroup }) => [
      create('h3', '', title),
      create('ol', '', ...ofGroup.map((step) => createStep(step, outcome))),
    ]),
  )
}

function createStep(step: VerifierStep, outcome: Outcome | undefined): HTMLElement {
  const isMock = outcome === undefined ? isMockStep(step) : isSimulated(step, outcome)
  const [tone, word] = isMock && step.status === 'pass' ? (['warning', 'Passed (MOCK)'] as const) : marks[step.status]
  const meaning = outcome && describeStep(step, { ...outcome, isOperatorNode: false })
  const item = create('li', tone, create('span', 'mark', word), ` ${step.title}`)
  if (meaning !== undefined) {
    item.append(create('p', 'detail', meaning), create('p', 'detail', toPrintable(step.detail)))
  }
  item.dataset.step = step.id
  item.dataset.status = step.status
  return item
}

function say(text: string): void {
  find('status').textContent = text
}

function find<Kind extends HTMLElement>(id: string): Kind {
  const found = document.getElementById(id) ?? document.querySelector(id)
  return found as Kind
}

/** Text stays text: it comes from receipts and servers. */
function create(tag: string, className: string, ...children: (Node | string)[]): HTMLElement {
  const element = document.createElement(tag)
  if (className !== '') element.className = className
  element.append(...children)
  return element
}
