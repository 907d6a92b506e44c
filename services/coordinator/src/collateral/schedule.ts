/** Runs a task once after a while; what it returns calls it off. */
export type Schedule = (task: () => void, delayMs: number) => () => void

/** By the system's timers. They do not keep a process alive that has nothing else to do. */
export const scheduleByTimer: Schedule = (task, delayMs) => {
  const timer = setTimeout(task, delayMs)
  timer.unref()
  return () => clearTimeout(timer)
}
