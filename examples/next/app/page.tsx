import { Pay } from './Pay'

export default function Page() {
  return (
    <main>
      <h1>Pay with Countersign</h1>
      <Pay />
    </main>
  )
}
