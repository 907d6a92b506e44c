import { createServer } from 'node:net'
import { readCode } from '@countersign/service'

/** Browsers take `localhost` for either, so that a stranger on one would get the calls meant for us. */
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
    // A machine without IPv6: nothing can listen there.
    return code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT'
  }
}
