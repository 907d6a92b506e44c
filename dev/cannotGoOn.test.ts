import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listen } from '@countersign/testing/stack'
import { describe, expect, onTestFinished, test } from 'vitest'
import { getFreePorts, type Ports, startDev, toArgs } from './startDev.ts'
import { clearState } from './state.ts'

describe("npm run dev, when it can't start or continue", () => {
  /** Without the web app, which these tests don't need. */
  async function startAlone({
    args = ['--no-web', '--verbose'],
    taken = {},
  }: {
    args?: string[]
    taken?: Partial<Ports>
  } = {}) {
    const stateDir = await mkdtemp(join(tmpdir(), 'countersign-dev-'))
    const ports = { ...(await getFreePorts()), ...taken }
    return {
      stateDir,
      ports,
      start() {
        const dev = startDev([...toArgs(ports, stateDir), ...args])
        onTestFinished(async () => {
          await dev.stop()
          await clearState(stateDir)
          await rm(stateDir, { recursive: true, force: true })
        })
        return dev
      },
    }
  }

  async function takePort(): Promise<number> {
    const { port, stop } = await listen(createServer())
    onTestFinished(stop)
    return port
  }

  test.each(['web', 'demo', 'enclave', 'chain'] as const)(
    'names a taken port of the %s before anything starts',
    async (name) => {
      const port = await takePort()
      const { start } = await startAlone({ args: [], taken: { [name]: port } })
      const dev = start()
      expect(await dev.ended).toBe(1)
      expect(dev.output).toEqual([
        `Port ${port} is in use. Stop the other process or choose another port with --${name}-port.`,
      ])
    },
  )

  test('exits with 0 if it is stopped while it starts, and without the web app ignores its port', async () => {
    const dev = (await startAlone({ taken: { web: await takePort() } })).start()
    await dev.line('Started the enclave')
    dev.child.kill('SIGTERM')
    expect(await dev.ended).toBe(0)
    expect(dev.output.join('\n')).not.toMatch(/^web/m)
  })

  test("reports a chain that can't be replayed, and stops before it starts a coordinator", async () => {
    const { start, stateDir } = await startAlone()
    await mkdir(join(stateDir, 'chain'))
    await writeFile(join(stateDir, 'chain', 'journal.jsonl'), '{}\n')
    const dev = start()
    expect(await dev.ended).toBe(1)
    expect(dev.output.at(-1)).toContain('npm run dev -- --reset')
    expect(dev.output.join('\n')).not.toMatch(/^coordinator|chain +ready|Ctrl-C/m)
  })

  test('exits with 1 if a service fails to start, and shows its last lines', async () => {
    // No PostgreSQL answers there, so the coordinator exits.
    const { port, stop } = await listen(createServer())
    await stop()
    const args = ['--no-web', '--verbose', '--database', `postgres://nobody@127.0.0.1:${port}/none`]
    const { start, ports } = await startAlone({ args })
    const dev = start()
    expect(await dev.ended).toBe(1)
    const fault = dev.output.lastIndexOf('The coordinator exited with code 1. Its last lines:')
    expect(dev.output.slice(fault + 1).join('\n')).toMatch(/^ {2}Could not start {2}reason=/m)
    expect(dev.output.join('\n')).toContain('Stopped the enclave')
    expect(dev.output.join('\n')).not.toContain('Ctrl-C')
    await expect(fetch(`http://127.0.0.1:${ports.enclave}/health`)).rejects.toThrow()
  })

  test('prints the usage for unknown options and exits with 2', async () => {
    const dev = (await startAlone({ args: ['--fast'] })).start()
    expect(await dev.ended).toBe(2)
    expect(dev.output.join('\n')).toMatch(/'--fast'.*usage: npm run dev/s)
  })
})
