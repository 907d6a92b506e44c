import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Packed } from './readPublished.ts'

/** The files of one version of a package: a tarball, or a folder of `node_modules`. */
type Source =
  | { manifest: { name: string; version: string }; tarball: string }
  | { manifest: { name: string; version: string }; folder: string }

export type Registry = { url: string; stop(): Promise<void> }

/**
 * An npm registry on loopback with our packages, as if published, and the packages installed in this checkout. npm can install them into an
 * empty project without a network.
 */
export async function startRegistry(root: string, packed: readonly Packed[]): Promise<Registry> {
  const sources: Source[] = [...packed, ...listInstalled(root)]
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1)
    const [, name = path, version] = /^(.+)\/-\/(.+)\.tgz$/.exec(path) ?? []
    const found = sources.filter(({ manifest }) => manifest.name === name)
    const wanted = found.find(({ manifest }) => manifest.version === version)
    if (version !== undefined && wanted !== undefined) return sendTarball(response, wanted)
    if (version !== undefined || found.length === 0) return void response.writeHead(404).end('{}')
    const versions = found.map(({ manifest }) => {
      const dist = { tarball: `http://${request.headers.host}/${name}/-/${manifest.version}.tgz` }
      return [manifest.version, { ...manifest, dist }]
    })
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ name, 'dist-tags': { latest: versions[0]?.[0] }, versions: Object.fromEntries(versions) }),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function listInstalled(root: string): Source[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'node_modules/.package-lock.json'), 'utf8'))
  return Object.entries(packages as Record<string, { link?: boolean }>).flatMap(([path, { link }]) => {
    if (!path.includes('node_modules/') || link === true) return []
    const folder = join(root, path)
    return [{ manifest: JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')), folder }]
  })
}

function sendTarball(response: ServerResponse, source: Source): void {
  if ('tarball' in source) return void createReadStream(source.tarball).pipe(response)
  const args = ['-cz', '--exclude=./node_modules', '--transform=s,^\\.,package,', '-C', source.folder, '.']
  const tar = spawn('tar', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  tar.stdout.pipe(response)
}
