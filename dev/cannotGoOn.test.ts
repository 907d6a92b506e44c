import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listen } from '@countersign/testing/stack'
import { describe, expect, onTestFinished, test } from 'vitest'
import { getFreePorts, type Ports, startDev, toArgs } from './startDev.ts'
import { clearState } from './state.ts'

describe('npm run dev, when it cannot go on', () => {
  /** Without the web app, which none of this is about. */
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
    'a taken port of the %s is said plainly, before anything starts',
    async (name) => {
      const port = await takePort()
      const { start } = await startAlone({ args: [], taken: { [name]: port } })
      const dev = start()
      expect(await dev.ended).toBe(1)
      expect(dev.output).toEqual([`Port ${port} is taken: end what uses it, or choose another with --${name}-port.`])
    },
  )

  test('told to stop while it starts, it stops with 0; without the web app its port may be taken', async () => {
    const dev = (await startAlone({ taken: { web: await takePort() } })).start()
    await dev.line('Started the enclave')
    dev.child.kill('SIGTERM')
    expect(await dev.ended).toBe(0)
    expect(dev.output.join('\n')).not.toMatch(/^web/m)
  })

  test('a chain that cannot be replayed is said plainly, and ends the rest before there is a coordinator', async () => {
    const { start, stateDir } = await startAlone()
    await mkdir(join(stateDir, 'chain'))
    await writeFile(join(stateDir, 'chain', 'journal.jsonl'), '{}\n')
    const dev = start()
    expect(await dev.ended).toBe(1)
    expect(dev.output.at(-1)).toContain('npm run dev -- --reset')
    expect(dev.output.join('\n')).not.toMatch(/^coordinator|chain +ready|Ctrl-C/m)
  })

  test('a service that cannot start ends the rest with 1, and its last lines say why', async () => {
    // No PostgreSQL answers there, so the coordinator gives up.
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

  test('unknown options are answered with the usage and 2', async () => {
    const dev = (await startAlone({ args: ['--fast'] })).start()
    expect(await dev.ended).toBe(2)
    expect(dev.output.join('\n')).toMatch(/'--fast'.*usage: npm run dev/s)
  })
})
