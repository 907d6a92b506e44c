import { join } from 'node:path'
import { mergeConfig, type Plugin } from 'vite'
import type { WebConfig } from '../apps/web/src/config.ts'
import webViteConfig from '../apps/web/vite.config.ts'
import { openPages } from './openPages.ts'

/** Serves the built web app at a separate origin, where anyone verifies a service's proofs. */
export async function openProofPages(config: WebConfig): Promise<{ origin: string; stop(): Promise<void> }> {
  const { ports, serve, stop } = await openPages(1)
  try {
    const root = join(import.meta.dirname, '../apps/web')
    await serve(mergeConfig(webViteConfig, { root, plugins: [emitConfiguration(config)] }))
  } catch (error) {
    await stop()
    throw error
  }
  return { origin: `http://localhost:${ports[0]}`, stop }
}

function emitConfiguration(config: WebConfig): Plugin {
  return {
    name: 'countersign-configuration',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: 'config.json', source: JSON.stringify(config) })
    },
  }
}
