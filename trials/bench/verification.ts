import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import {
  type Collateral,
  createVerifier,
  parseCollateral,
  parsePem,
  type TrustedRoot,
  vendorRoots,
} from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { QuoteVerifier } from '@phala/dcap-qvl'
import initWasm, { js_verify } from '@phala/dcap-qvl-web'
import type { Report, Row, Run } from './report.ts'

type Evidence = { label: string; quote: Uint8Array; collateral: Collateral; at: Date; roots: readonly TrustedRoot[] }

const SLICE_MS = 150
/** Turns per round. They are much shorter than those of other suites. */
const TURNS = 5
const WARM = 'countersign, warm'

/** Compares this verifier, cold and warm, with the best-known ones in JavaScript and WebAssembly on the same quote. */
export async function benchVerification({ fixtures, rounds: wantedRounds }: Run): Promise<Report[]> {
  const rounds = wantedRounds * TURNS
  const evidence = await readEvidence(fixtures)
  const others = await createOthers(evidence)
  const warm = createVerifier(evidence)
  const rows = await takeTurns(
    [
      { name: WARM, run: () => warm.verifyQuote(evidence) },
      { name: 'countersign, cold', run: () => createVerifier(evidence).verifyQuote(evidence) },
      ...others,
    ],
    rounds,
  )
  return [
    {
      suite: 'verification',
      setting: `The same ${evidence.label} quote for all, cold (first verification) and warm; medians of ${rounds} turns.`,
      columns: ['ms'],
      rows,
      ratios: others.map(({ name }) => [name, WARM] as const),
    },
  ]
}

/** The real quote if its fixture is there: the WebAssembly verifier has Intel's root built in. Otherwise a simulated one. */
async function readEvidence(fixtures: string): Promise<Evidence> {
  const folder = join(fixtures, 'tdx/phala-dcap-qvl')
  if (existsSync(folder)) {
    return {
      label: 'real TDX v4',
      quote: await readFile(join(folder, 'tdx_quote')),
      collateral: parseCollateral((await readFile(join(folder, 'tdx_quote_collateral.json'), 'utf8')).trim()),
      at: new Date('2025-06-25T00:00:00Z'),
      roots: vendorRoots,
    }
  }
  const at = new Date('2026-06-15T00:00:00Z')
  const simulator = createSimulator({ at })
  return {
    label: 'simulated TDX v4',
    quote: simulator.quote({ reportData: new Uint8Array(64) }),
    collateral: simulator.collateral(),
    at,
    roots: [simulator.intelRoot],
  }
}

function isReal({ roots }: Evidence): boolean {
  return roots === vendorRoots
}

async function createOthers(evidence: Evidence): Promise<Candidate[]> {
  const { quote, collateral, at } = evidence
  const seconds = Math.floor(at.getTime() / 1000)
  const name = '@phala/dcap-qvl 0.3.9'
  if (!isReal(evidence)) {
    const verifier = new QuoteVerifier(Buffer.from(parsePem(collateral.pck_crl_issuer_chain)[1] ?? []))
    return [{ name, run: () => verifier.verify(quote, collateral, seconds) }]
  }
  const wasm = createRequire(import.meta.url).resolve('@phala/dcap-qvl-web/dcap-qvl-web_bg.wasm')
  await initWasm({ module_or_path: await readFile(wasm) })
  const verifier = QuoteVerifier.newProd()
  return [
    { name, run: () => verifier.verify(quote, collateral, seconds) },
    { name: '@phala/dcap-qvl-web 0.3.3 (WebAssembly)', run: () => js_verify(quote, collateral, BigInt(seconds)) },
  ]
}

type Candidate = { name: string; run: () => unknown }

/** Measures candidates in turns, so that other load on the machine affects all alike. Returns the time per call for each turn. */
async function takeTurns(candidates: Candidate[], rounds: number): Promise<Row[]> {
  const samples = new Map(candidates.map(({ name }) => [name, [] as number[]]))
  for (const { run } of candidates) for (let index = 0; index < 20; index++) await run()
  for (let round = 0; round < rounds; round++) {
    for (const { name, run } of candidates) {
      let calls = 0
      const start = performance.now()
      while (performance.now() - start < SLICE_MS) {
        await run()
        calls += 1
      }
      samples.get(name)?.push((performance.now() - start) / calls)
    }
  }
  return candidates.map(({ name }) => ({ name, cells: { ms: samples.get(name) ?? [] } }))
}
