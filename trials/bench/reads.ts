import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findFreePorts, findProgram } from '@countersign/testing'
import { type Scope, withScope } from '@countersign/testing/stack'
import { openStores } from '../../services/coordinator/src/store/openStore.ts'
import { until } from '../until.ts'
import { readTime } from './budget.ts'
import { completeProofs } from './completeProofs.ts'
import { signMany, toRequest } from './load.ts'
import { describeTurns, measureLanes, type Report, type Row, type Run } from './report.ts'
import { openBench, startProgram } from './stack.ts'

const CONNECTIONS = [1, 64]
const CACHE_CONNECTIONS = [64]
/** Number of proofs in each state. */
const PROOFS = 100
const WARM_SLICES = 4

/**
 * `GET /proof/:slug` of complete proofs, in turns with an echo server that returns as many bytes: directly, and both behind one nginx with a
 * cache.
 */
export function benchReads(run: Run): Promise<Report[]> {
  const sliceMs = run.isQuick ? 300 : 1_500
  const count = run.isQuick ? 10 : PROOFS
  return withScope(async (scope) => {
    const bench = await openBench(scope)
    const nginx = findProgram('nginx')
    if (nginx === undefined) run.say('nginx not found: skipping reads through a cache')
    const rows = new Map<string, Record<string, readonly number[]>>()
    /** Prefixes the column names. Processor time is measured at the highest number of connections only. */
    const add = (prefix: string, measured: readonly Row[]) => {
      for (const { name, cells } of measured) {
        const renamed = Object.entries(cells).map(([column, values]) => [`${prefix}${column}`, values])
        rows.set(name, { ...rows.get(name), ...Object.fromEntries(renamed) })
      }
    }
    const sizes: number[] = []
    for (const receipts of [1, 2] as const) {
      const service = await bench.start({ receipts })
      const slugs = await signMany(service, { ...service, count: 2 * count })
      const { store, pipeline } = await openStores({ databaseUrl: service.databaseUrl })
      await completeProofs(pipeline, slugs.slice(0, count))
      await completeProofs(pipeline, slugs.slice(count), { isFinal: false })
      await store.close()
      const requests = slugs.map((slug) => toRequest(`GET /proof/${slug}`))
      const [final, open] = [requests.slice(0, count), requests.slice(count)]
      const bytes = (await (await fetch(`${service.url}/proof/${slugs[0]}`)).arrayBuffer()).byteLength
      sizes.push(bytes)
      const echo = await startProgram(scope, 'echo server', 'trials/bench/echoServer.ts', { BODY_BYTES: String(bytes) })
      const time = (pid: number | undefined) => async () => ({ ' µs': (await readTime(`${pid}`)).own })
      const own = time(service.stack.pids().coordinator)
      const direct = [
        { name: 'proofs', load: { urls: service.urls, requests: final }, count: own },
        { name: 'echo', load: { urls: [echo.url], requests: final }, count: time(echo.service.pid) },
        { name: 'not final', load: { urls: service.urls, requests: open }, count: own },
      ]
      const how = { sliceMs, warmSlices: WARM_SLICES }
      add(`v${receipts}`, await measureLanes(run, direct, { ...how, connections: CONNECTIONS }))
      if (nginx === undefined) continue
      const urls = await startCache(scope, nginx, [service.url, echo.url])
      const cached = direct.slice(0, 2).map(({ name }, index) => {
        return { name, load: { urls: urls.slice(index, index + 1), requests: final } }
      })
      add(`v${receipts} nginx`, await measureLanes(run, cached, { ...how, connections: CACHE_CONNECTIONS }))
    }
    const setting =
      `\`GET /proof/:slug\` on PostgreSQL with receipts of version 1 and 2 (v1 and v2; ${sizes.join(' and ')} bytes): reads per second (@) ` +
      `and p99 in ms at 1 and 64 connections, µs of processor time per read, and reads through a caching nginx; ${describeTurns(run, sliceMs)}.`
    return [
      {
        suite: 'reads',
        setting,
        columns: [
          'v1@1',
          'v1@64',
          'v1p99@64',
          'v1 µs',
          'v1 nginx@64',
          'v2@1',
          'v2@64',
          'v2p99@64',
          'v2 µs',
          'v2 nginx@64',
        ],
        rows: [...rows].map(([name, cells]) => ({ name, cells })),
        ratios: [
          ['proofs', 'echo'],
          ['not final', 'echo'],
        ],
      },
    ]
  })
}

/** Starts one caching nginx with a port for each target. */
async function startCache(scope: Scope, program: string, targets: readonly string[]): Promise<string[]> {
  const folder = await scope.createFolder()
  const ports = await findFreePorts(targets.length)
  const servers = targets.map(
    (target, index) => `
  upstream behind${index} { server ${new URL(target).host}; keepalive 8; }
  server {
    listen 127.0.0.1:${ports[index]};
    location / {
      proxy_pass http://behind${index};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_cache kept;
      proxy_cache_key "${index}$request_uri";
    }
  }`,
  )
  const file = join(folder, 'nginx.conf')
  await writeFile(
    file,
    `daemon off; pid ${folder}/pid; error_log ${folder}/errors; ${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 1024; }
http {
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
  open_file_cache max=1000 inactive=1h; open_file_cache_valid 1h;
  proxy_temp_path ${folder}/temp; proxy_cache_path ${folder}/cache keys_zone=kept:10m inactive=1h;
  client_body_temp_path ${folder}/b; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
${servers.join('')}
}
`,
  )
  await promisify(execFile)(program, ['-t', '-q', '-p', folder, '-c', file])
  const child = spawn(program, ['-p', folder, '-c', file], { stdio: 'ignore' })
  scope.add(child, async () => {
    if (child.exitCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  const urls = ports.map((port) => `http://127.0.0.1:${port}`)
  const answers = () =>
    Promise.all(urls.map((url) => fetch(url))).then(
      () => true,
      () => false,
    )
  await until(answers, 10_000, 50)
  return urls
}
