import { open } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { readArguments, refuseArguments } from '../../scripts/readArguments.ts'
import { type AttackName, attackNames } from './attackNames.ts'
import type { SecurityResult } from './runSecurity.ts'

const USAGE = `usage: npm run security -- [--only NAME]... [--seed N] [--short] [--json FILE] [--help]

Attacks a whole backend on this machine (identity provider, PostgreSQL, enclave and coordinator as processes of their own)
and tells what was tried, with which figures, and what should not have happened.
  --only NAME    this attack alone; may be given several times. One of:
                 ${attackNames.slice(0, 5).join(', ')},
                 ${attackNames.slice(5, 10).join(', ')},
                 ${attackNames.slice(10).join(', ')}
  --seed N       a whole number from 0; the same one tries the same again (default 1)
  --short        as in the test suite: fewer of everything, and no judgement of times
  --json FILE    writes the results to a file too
  --help         says this

Example: npm run security -- --short --only open-redirect
Exit codes: 0 no fault, 1 faults, 2 wrong arguments.`

const MOST_SHOWN = 20

type Options = { names: readonly AttackName[]; seed: number; size: 'short' | 'full'; json: string | undefined }

function readOptions(): Options {
  const { values } = readArguments(
    {
      only: { type: 'string', multiple: true },
      seed: { type: 'string', default: '1' },
      short: { type: 'boolean', default: false },
      json: { type: 'string' },
    },
    USAGE,
  )
  const only = values.only ?? []
  const unknown = only.filter((name) => !attackNames.some((each) => each === name))
  if (unknown.length > 0) refuseArguments(`There is no attack ${unknown.join(', ')}.`, USAGE)
  if (!/^[0-9]{1,9}$/.test(values.seed)) refuseArguments(`--seed is not a whole number: ${values.seed}`, USAGE)
  return {
    names: attackNames.filter((name) => only.length === 0 || only.includes(name)),
    seed: Number(values.seed),
    size: values.short ? 'short' : 'full',
    json: values.json,
  }
}

function print(results: readonly SecurityResult[]) {
  console.log(`\n${'attack'.padEnd(30)} ${'tried'.padStart(7)} ${'faults'.padStart(7)} ${'seconds'.padStart(8)}`)
  for (const { name, tried, faults, figures, seconds } of results) {
    console.log(
      `${name.padEnd(30)} ${String(tried).padStart(7)} ${String(faults.length).padStart(7)} ${seconds.toFixed(0).padStart(8)}`,
    )
    for (const [label, figure] of Object.entries(figures)) console.log(`    ${label}: ${figure}`)
    for (const fault of faults.slice(0, MOST_SHOWN)) console.log(`    FAULT ${fault}`)
    if (faults.length > MOST_SHOWN) console.log(`    … and ${faults.length - MOST_SHOWN} more`)
  }
}

async function main(): Promise<number> {
  const { names, seed, size, json } = readOptions()
  // Before minutes of work, not after.
  const file = json === undefined ? undefined : await open(json, 'w').catch(() => undefined)
  if (json !== undefined && file === undefined) {
    console.error(`cannot write ${json}`)
    return 2
  }
  const stop = new AbortController()
  process.once('SIGINT', () => stop.abort())
  process.once('SIGTERM', () => stop.abort())
  const machine = {
    processor: cpus()[0]?.model.trim(),
    cores: availableParallelism(),
    node: process.version,
    arch: process.arch,
    loadBefore: Number(loadavg()[0]?.toFixed(2)),
  }
  const { processor, cores, node, arch, loadBefore } = machine
  console.log(`${processor}, ${cores} cores, ${arch}, Node ${node}; load before the start ${loadBefore}; seed ${seed}`)
  // After the arguments are read: it takes seconds to load.
  const { runSecurity } = await import('./runSecurity.ts')
  const results = await runSecurity({ names, size, seed, say: console.log, signal: stop.signal })
  print(results)
  await file?.writeFile(`${JSON.stringify({ machine, seed, size, results }, undefined, 2)}\n`)
  await file?.close()
  const count = results.reduce((sum, { faults }) => sum + faults.length, 0)
  const tried = results.reduce((sum, result) => sum + result.tried, 0)
  console.log(
    `\n${results.length} attacks, ${tried} tried, ${count} faults; load at the end ${loadavg()[0]?.toFixed(2)}`,
  )
  return count === 0 && results.length === names.length ? 0 : 1
}

// Said outright: the hook that PostgreSQL comes with would end the process with 0, whatever the exit code was set to.
process.exit(await main())
