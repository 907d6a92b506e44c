import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { toPath } from '@countersign/testing/launcher'
import type { Authority } from './authority.ts'
import { type Haproxy, replaceAll, startHaproxy } from './haproxy.ts'

/** Starts HAProxy with the deployed configuration. Only addresses and the certificate differ. */
export async function startDeployedHaproxy(parameters: {
  program: string
  folder: string
  authority: Authority
  port: number
  coordinatorPorts: readonly number[]
  ipfsPort: number
  onLine?(line: string): void
}): Promise<Haproxy> {
  const { program, folder, authority, port, coordinatorPorts, ipfsPort, onLine } = parameters
  const { certificate, key } = await authority.issue()
  const certificateFile = join(folder, 'proxy.pem')
  await writeFile(certificateFile, `${certificate}\n${key}`, { mode: 0o600 })
  const text = await readFile(toPath('deploy/compose/haproxy.cfg'), 'utf8')
  const servers = Object.fromEntries(
    [8081, 8082, 8083].map((deployed, index) => {
      const line = `  server coordinator-${index + 1} 127.0.0.1:${deployed}\n`
      const own = coordinatorPorts[index]
      return [line, own === undefined ? '' : line.replace(String(deployed), String(own))]
    }),
  )
  return startHaproxy({
    program,
    text: replaceAll(text, {
      'bind :8443 ssl crt /run/secrets/tls.pem': `bind 127.0.0.1:${port} ssl crt ${certificateFile}`,
      // Abstract sockets are shared by all processes on this machine.
      'abns@countersign-once': `abns@countersign-once-${port}`,
      'server kubo 127.0.0.1:8080': `server kubo 127.0.0.1:${ipfsPort}`,
      ...servers,
    }),
    file: join(folder, 'haproxy.cfg'),
    port,
    env: { APP_HOST: 'app.localhost' },
    ...(onLine === undefined ? {} : { onLine }),
  })
}
