import { startSatellite } from '@countersign/testing'

/** A satellite in a process of its own, so that its signing does not slow what is measured more than it must. */
const { url, publicKey, stop } = await startSatellite({})
console.log(JSON.stringify({ msg: 'Started the satellite', address: url, publicKey }))
process.once('SIGTERM', () => void stop())
