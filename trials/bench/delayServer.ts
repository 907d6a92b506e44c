import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { listen } from '@countersign/testing/stack'

/**
 * Makes services be some way off: whoever posts the address of one gets another, at which every call takes so much longer. All of them in one process of
 * its own, which passes bytes on as they are: what stands for a distance must not take part in what is measured.
 */
const delayMs = Number(process.env.DELAY_MS)

function delay(client: Socket, { hostname, port }: URL) {
  const service = connect(Number(port), hostname)
  client.setNoDelay(true)
  service.setNoDelay(true)
  client.on('data', (chunk) => setTimeout(() => service.write(chunk), delayMs))
  service.on('data', (chunk) => client.write(chunk))
  const end = () => {
    client.destroy()
    service.destroy()
  }
  for (const socket of [client, service]) socket.on('error', end).on('close', end)
}

const control = createHttpServer(async (request, response) => {
  const target = new URL(await text(request))
  const server = createServer((client) => delay(client, target)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  response.end(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
const { url } = await listen(control)
console.log(JSON.stringify({ msg: 'Started the delay', address: url }))
