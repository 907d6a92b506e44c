import { startSatellite } from '@countersign/testing'

/** A satellite in a separate process, so that its signing takes less time away from the measured code. */
const { url, publicKey, stop } = await startSatellite({})
console.log(JSON.stringify({ msg: 'Started the satellite', address: url, publicKey }))
process.once('SIGTERM', () => void stop())
