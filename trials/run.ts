import { constants } from 'node:os'
import { readArguments, refuseArguments } from '../scripts/readArguments.ts'
import { toTable } from './table.ts'
import { type Option, type Outcome, type Trial, WrongArgumentError } from './trial.ts'
import { trials } from './trials.ts'

const MOST_FAULTS = 50
/** `npm run NAME` passes the name as the first argument. */
const [name = ''] = process.argv.splice(2, 1)
const trial = await trials[name]?.()

function toUsage({ summary, options, names, example }: Trial): string {
  const given = Object.entries(options).map(([option, each]) => [`--${option}${toPlaceholder(each)}`, each] as const)
  const width = Math.max(...given.map(([text]) => text.length), '--help'.length)
  const lines = given.map(([text, each]) => `  ${text.padEnd(width)}  ${each.text}${toDefault(each)}`)
  return [
    `usage: npm run ${name} --${names === undefined ? '' : ' [NAME…]'}${given.map(([text]) => ` [${text}]`).join('')}`,
    '',
    summary,
    ...(names === undefined ? [] : ['', `Names: ${names.join(', ')} (default all, in this order)`]),
    '',
    ...lines,
    `  ${'--help'.padEnd(width)}  show this help`,
    '',
    `Example: npm run ${name} -- ${example}`,
    'Exit codes: 0 no faults, 1 faults found, 2 wrong arguments or a missing program.',
  ].join('\n')
}

function toPlaceholder(option: Option): string {
  return option.kind === 'flag' ? '' : ` ${option.placeholder ?? 'N'}`
}

function toDefault(option: Option): string {
  if (option.kind === 'number') return ` (default ${option.default})`
  return option.kind === 'choices' ? `: ${option.among.join(', ')} (default all)` : ''
}

function readValues(chosen: Trial, usage: string) {
  const config = Object.fromEntries(
    Object.entries(chosen.options).map(([option, { kind }]) => [
      option,
      { type: kind === 'flag' ? ('boolean' as const) : ('string' as const), multiple: kind === 'choices' },
    ]),
  )
  const { values, positionals } = readArguments(config, usage, { takesPositionals: chosen.names !== undefined })
  const refuse = (fault: string) => refuseArguments(fault, usage)
  const select = (among: readonly string[], wanted: readonly string[]) => {
    const unknown = wanted.find((each) => !among.includes(each))
    if (unknown !== undefined) refuse(`unknown name ${unknown}: expected one of ${among.join(', ')}`)
    return wanted.length === 0 ? among : among.filter((each) => wanted.includes(each))
  }
  const options = Object.entries(chosen.options).map(([option, each]) => {
    const given = values[option]
    if (each.kind === 'flag') return [option, given === true]
    if (each.kind === 'text') return [option, given ?? each.default]
    if (each.kind === 'choices')
      return [
        option,
        select(
          each.among,
          [given ?? []].flat().flatMap((text) => String(text).split(',')),
        ),
      ]
    const number = given === undefined ? each.default : Number(given === '' ? Number.NaN : given)
    const isFine = number >= each.least && number <= each.most && (!each.isWhole || Number.isSafeInteger(number))
    if (!isFine)
      refuse(
        `invalid --${option} ${String(given)}: expected a ${each.isWhole ? 'whole ' : ''}number from ${each.least} to ${each.most}`,
      )
    return [option, number]
  })
  return { options: Object.fromEntries(options) as never, names: select(chosen.names ?? [], positionals) }
}

function print({ faults, tables = [], figures }: Outcome) {
  for (const table of tables.filter(({ rows }) => rows.length > 0)) console.log(`\n${toTable(table)}`)
  if (figures !== undefined) console.log(`\n${JSON.stringify(figures, undefined, 2)}`)
  for (const fault of faults.slice(0, MOST_FAULTS)) console.log(`fault: ${fault}`)
  if (faults.length > MOST_FAULTS) console.log(`… and ${faults.length - MOST_FAULTS} more faults`)
}

async function run(chosen: Trial): Promise<number> {
  const usage = toUsage(chosen)
  const { options, names } = readValues(chosen, usage)
  const { createScope } = await import('@countersign/testing/stack')
  const { scope, end } = createScope()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void end().finally(() => process.exit(128 + constants.signals[signal])))
  }
  const startedAt = performance.now()
  const toSeconds = () => ((performance.now() - startedAt) / 1000).toFixed(0)
  const say = (line: string) => console.error(`[${toSeconds()} s] ${line}`)
  try {
    const outcome = await chosen.run({ scope, say }, options, names)
    print(outcome)
    console.log(`${name}: ${outcome.faults.length} faults (${toSeconds()} s)`)
    return outcome.faults.length === 0 ? 0 : 1
  } catch (error) {
    if (error instanceof WrongArgumentError) return refuseArguments(error.message, usage)
    throw error
  } finally {
    await end()
  }
}

if (trial === undefined) {
  if (name !== '') console.error(`unknown trial ${name}\n`)
  console.error(`usage: node -C source trials/run.ts NAME\n\nNames: ${Object.keys(trials).join(', ')}`)
  process.exit(2)
}
// Explicit, because native handles in this process, such as the chain's, can keep Node running.
process.exit(await run(trial))
