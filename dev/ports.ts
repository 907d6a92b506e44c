import { createServer } from 'node:net'
import { readCode } from '@countersign/service'

/** Browsers resolve `localhost` to either, so another program on one of them would get our calls. */
const LOOPBACK = ['127.0.0.1', '::1']

export async function isPortFree(port: number): Promise<boolean> {
  for (const host of LOOPBACK) if (!(await canListen(port, host))) return false
  return true
}

async function canListen(port: number, host: string): Promise<boolean> {
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
    await new Promise((resolve) => server.close(resolve))
    return true
  } catch (error) {
    const code = readCode(error)
    // Without IPv6 no other program can listen there.
    return code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT'
  }
}
