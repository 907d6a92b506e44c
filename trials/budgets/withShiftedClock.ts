/* Loaded into an enclave process whose host has set the clock. */

const shiftMs = Number(process.env.CLOCK_SHIFT_MS)
const { now } = Date
Date.now = () => now() + shiftMs
