// The slider shows its epsilon while it moves; everything else works without this file.
document.addEventListener("input", (event) => {
  const slider = event.target;
  if (slider.id !== "epsilon") return;
  const epsilon = slider.dataset.places.split(" ")[slider.value];
  document.getElementById("epsilon-shown").textContent = epsilon;
  slider.setAttribute("aria-valuetext", "epsilon " + epsilon);
});

// A card says "Kept." only once its last change is kept.
for (const name of ["change", "htmx:beforeRequest"]) {
  document.addEventListener(name, (event) => {
    const card = event.target.closest("fieldset.column");
    if (card) card.querySelector(".status").textContent = "";
  });
}
